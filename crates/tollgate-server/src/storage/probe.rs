//! Probes a store like a starting node.

use super::{Storage, StorageError};
use crate::node::tier_cache::WRONG_TYPE;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::sleep;
use tollgate::StoreError;
use tollgate::store::redis::ServerReport;
use tollgate_policy::limit::{Consistency, Limit};
use tollgate_policy::settings::{Settings, TierSource};
use tollgate_store::StoreErrorKind;

/// Limit of attempts: the first ones may fail while the connection is being made.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);
/// Number of timed calls; the fastest counts.
const CALLS: u32 = 5;

/// The reason why a probe failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The settings of the store are unusable.
    #[error("{0}")]
    Storage(StorageError),
    /// The store did not answer.
    #[error("{0}")]
    Store(StoreError),
}

/// Probes the store of a file; `None` for the memory store. Relative paths start in `beside`. If
/// one of `limits` is leased, also checks the rights that leases need.
///
/// # Errors
///
/// When the settings are unusable, or the store does not answer within a few seconds.
pub fn probe<'a>(
    settings: &Settings,
    limits: impl IntoIterator<Item = &'a Limit>,
    beside: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<ServerReport>, ProbeError> {
    let is_leased = |limit: &Limit| matches!(limit.consistency, Consistency::Leased { .. });
    let leases = limits.into_iter().any(is_leased);
    let storage = Storage::new(&settings.store, beside, variable).map_err(ProbeError::Storage)?;
    let system = |error| ProbeError::Storage(StorageError::System(error));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(system)?;
    runtime.block_on(async {
        let Some(mut report) = first_report(&storage, leases).await.map_err(ProbeError::Store)?
        else {
            return Ok(None);
        };
        for _ in 1..CALLS {
            if let Some(Ok(next)) = storage.probe(leases).await
                && next.latency_us < report.latency_us
            {
                report = next;
            }
        }
        if let Some(TierSource::Redis { hash, .. }) = &settings.tiers.source
            && let Err(error) = storage.first_field(hash, &["tollgate".into()]).await
        {
            let why = if &*error.detail == WRONG_TYPE { " (WRONGTYPE)" } else { "" };
            report.missing.push(format!("HGET {hash}{why}").into());
        }
        Ok(Some(report))
    })
}

async fn first_report(storage: &Storage, leases: bool) -> Result<Option<ServerReport>, StoreError> {
    let mut why = StoreError::new(StoreErrorKind::Timeout, "");
    for _ in 0..ATTEMPTS {
        match storage.probe(leases).await {
            None => return Ok(None),
            Some(Ok(report)) => return Ok(Some(report)),
            Some(Err(error)) if !error.is_transient() => return Err(error),
            // The failure before says more than the open circuit breaker.
            Some(Err(error)) if error.kind == StoreErrorKind::BreakerOpen => {}
            Some(Err(error)) => why = error,
        }
        sleep(PAUSE).await;
    }
    Err(why)
}
