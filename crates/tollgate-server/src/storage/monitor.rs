//! Whether the store can be reached, asked whether or not anybody else asks.

use super::Storage;
use crate::Node;
use crate::node::health::Health;
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;
use tollgate::store::{Answers, Charge, Mode, ParamsId, Request, StoreCall};
use tollgate::{Store, StoreError};
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_policy::limit::{self, OnStoreFailure};

/// Under this name `/readyz` tells of it.
const STORE: &str = "store";
/// And of its tasks under this one.
const TASKS: &str = "store tasks";
const HEALTHY_INTERVAL: Duration = Duration::from_secs(1);
const FAILING_INTERVAL: Duration = Duration::from_millis(250);
/// One call may have been late; this many in a row were not chance.
const FAILURES_MIN: u32 = 2;

/// Shows in the node's health how its store is, for ever.
pub(crate) async fn monitor(node: &Node) {
    if let Storage::Memory(_) = node.gate.store() {
        return pending().await;
    }
    let (mut outage, mut died) = (Outage::default(), 0);
    let mut is_new = true;
    loop {
        report_task_restarts(&node.health, node.gate.store().task_restarts(), &mut died);
        match check_store(node).await {
            Ok(()) => {
                if is_new {
                    is_new = log_server_info(node).await.is_err();
                }
                if outage.record_success() {
                    tracing::info!("the store answers again");
                }
                report_breaker(&node.health, node.gate.store().is_breaker_open());
            }
            Err(error) => {
                let store = node.gate.store();
                let is_told =
                    outage.record_failure(store.is_breaker_open(), store.breaker_errors());
                // Whoever has never answered is not there.
                if is_new || outage.failures >= FAILURES_MIN {
                    report_failure(node, &error);
                }
                if !is_told {
                    tracing::error!(%error, "the store does not answer: each limit's own policy decides");
                }
            }
        }
        sleep(if outage.failures == 0 { HEALTHY_INTERVAL } else { FAILING_INTERVAL }).await;
    }
}

/// A row of looks that failed. The log has one line for its beginning and one for its end: those of
/// the breaker, or of the look where no breaker has one.
#[derive(Debug, Default)]
struct Outage {
    failures: u32,
    is_logged: bool,
}

impl Outage {
    /// Another look failed. Answers whether the log knows by now, or will: these looks alone open
    /// the breaker after so many errors.
    fn record_failure(&mut self, is_breaker_open: bool, breaker_errors: u32) -> bool {
        self.failures = self.failures.saturating_add(1);
        let opens = self.failures < breaker_errors.saturating_add(FAILURES_MIN);
        let is_told = self.is_logged || is_breaker_open || opens;
        self.is_logged |= !is_told;
        is_told
    }

    /// A look succeeded. Answers whether the log is to say so.
    fn record_success(&mut self) -> bool {
        std::mem::take(self).is_logged
    }
}

/// A look finds one server that decides; of a cluster others may be left alone, and whoever has
/// keys there is answered by each limit's own policy.
fn report_breaker(health: &Health, is_breaker_open: bool) {
    match is_breaker_open {
        true => health.degrade(STORE, "a part of the store failed and is left alone"),
        false => health.clear(STORE),
    }
}

/// Keeps traffic away until the next look where a task of the store died: it has been started
/// again, and why it died is in the log.
fn report_task_restarts(health: &Health, now: usize, before: &mut usize) {
    match std::mem::replace(before, now) == now {
        true => health.clear(TASKS),
        false => health.fail(TASKS, "one died and was started again; see the log"),
    }
}

/// Says once what sort of store it is, and what is wrong with it.
async fn log_server_info(node: &Node) -> Result<(), StoreError> {
    // Whatever is leased by now the store knows itself.
    let Some(report) = node.gate.store().probe(false).await else { return Ok(()) };
    let report = report?;
    let version = report.version.as_deref().unwrap_or("of unknown version");
    let mode = report.mode.as_deref().unwrap_or("unknown");
    tracing::info!(version, mode, "the store answers");
    let missing: Vec<_> =
        report.missing.iter().filter(|name| name.split(' ').next() != Some("INFO")).collect();
    if !missing.is_empty() {
        tracing::error!(
            ?missing,
            "the store refuses what nodes need; docs/operations.md has the rights"
        );
    }
    if !report.keeps_counts() {
        let policy = report.eviction.as_deref().unwrap_or_default();
        tracing::warn!(
            policy,
            "the store forgets counts when its memory is full; set maxmemory-policy to noeviction"
        );
    }
    Ok(())
}

/// Whether the store decides. Of a cluster it is enough that one server does: the others' keys are
/// answered by policy meanwhile.
async fn check_store(node: &Node) -> Result<(), StoreError> {
    let keys: &[&[u8]] = match node.gate.store().is_cluster() {
        true => &[b"tollgate", b"1", b"2", b"3", b"4", b"5", b"6", b"7"],
        false => &[b"tollgate"],
    };
    let mut looked = Ok(());
    for key in keys {
        looked = check_key(node, key).await;
        if looked.is_ok() {
            break;
        }
    }
    looked
}

/// Takes a unit of a key that nobody uses, on the way that every decision takes: a store that only
/// reads decides nothing.
async fn check_key(node: &Node, key: &[u8]) -> Result<(), StoreError> {
    let rate = Rate::try_new(1, 1_000).unwrap_or(Rate::NOTHING);
    let params = LimitParams::FixedWindow(FixedWindow::new(rate));
    let charge = Charge {
        limit: 0,
        key,
        params: &params,
        params_id: ParamsId::default(),
        cost: 1,
        mode: Mode::Enforce,
        penalty: None,
    };
    let requests = [Request { charges: &[charge], intent: Intent::Take }];
    node.gate
        .store()
        .call(node.clock.now_us(), StoreCall::Decide(&requests), &mut Answers::default())
        .await
}

/// Without its store a node is not ready only when every limit it enforces fails closed: then
/// another node, or none, does as well. As long as one of them lets requests pass or counts them
/// here, turning all traffic away would make an outage of it.
fn report_failure(node: &Node, error: &StoreError) {
    let rules = node.gate.rules();
    let limits = rules.policy().limits().iter();
    let mut enforced = limits.filter(|limit| limit.mode == limit::Mode::Enforce).peekable();
    let is_closed = enforced.peek().is_some()
        && enforced.all(|limit| limit.on_store_failure == OnStoreFailure::Closed);
    // The store's own words stay in the log: whoever can connect can read this.
    // Nor is it of use to hear that a store was not asked; what happened when it last was is.
    let kind = node.gate.store().outage().unwrap_or(error.kind);
    let text = StoreError::new(kind, "").to_string();
    match is_closed {
        true => node.health.fail(STORE, text),
        false => node.health.degrade(STORE, text),
    }
}

#[cfg(test)]
mod tests;
