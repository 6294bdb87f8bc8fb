//! State that all workers share, and the task that keeps it up to date.

use super::{
    forward,
    respond::status,
    upstream::{Upstreams, health_check},
};
use crate::{
    Node, RuntimeSettings,
    front::guard::LoginThrottle,
    tls::{Certificate, TlsError, TlsListener},
};
use arc_swap::ArcSwap;
use hyper::HeaderMap;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tollgate::ProcessClock;
use tollgate_tower::HttpGate;

/// What all workers share.
#[derive(Debug)]
pub(crate) struct GatewayState {
    pub(super) node: Arc<Node>,
    folder: PathBuf,
    pub(super) upstreams: ArcSwap<Upstreams>,
    pub(super) certificate: Option<Certificate>,
    is_maintained: AtomicBool,
    /// The settings that were looked at last: what one file says is tried once.
    last_settings: Mutex<Option<Arc<RuntimeSettings>>>,
    pub(super) toll: HttpGate<Node>,
    /// How often each address asked for its limits.
    pub(super) status_guard: LoginThrottle,
}

impl GatewayState {
    /// By what a node's file says; files that it names are in `folder`.
    ///
    /// # Errors
    ///
    /// When a certificate cannot be used.
    pub(crate) fn new(node: Arc<Node>, folder: &Path) -> Result<Self, TlsError> {
        let conduct = node.settings();
        let settings = &conduct.settings;
        let certificate = settings.gateway.tls.as_ref();
        let certificate = certificate
            .map(|files| Certificate::new(files, folder, TlsListener::Gateway))
            .transpose()?;
        let upstreams = Upstreams::new(settings, folder, 1)?;
        drop(conduct);
        Ok(Self {
            toll: HttpGate::new(node.clone()),
            node,
            folder: folder.into(),
            upstreams: ArcSwap::from_pointee(upstreams),
            certificate,
            is_maintained: AtomicBool::new(false),
            last_settings: Mutex::default(),
            status_guard: LoginThrottle::per_minute(status::PER_MINUTE),
        })
    }

    /// Removes from a request's trailers what a service could take for a header that counted here,
    /// or for one of ours.
    pub(super) fn remove_from_trailers(&self, trailers: &mut HeaderMap) {
        let (rules, reader) = (self.node.gate.rules(), self.toll.reader());
        forward::remove_from_trailers(
            trailers,
            |name| reader.reads(&rules, name),
            |name| reader.is_alias(&rules, name),
        );
    }

    /// Puts in force what has changed.
    fn apply_changes(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.poll(&self.node.health, ProcessClock.now_us());
        }
        let conduct = self.node.settings();
        let upstreams = self.upstreams.load();
        let mut tried = self.last_settings.lock().unwrap_or_else(PoisonError::into_inner);
        let again = tried.as_ref().is_some_and(|tried| Arc::ptr_eq(tried, &conduct));
        if again || conduct.settings.upstream.is_empty() {
            return;
        }
        *tried = Some(Arc::clone(&conduct));
        if !upstreams.matches(&conduct.settings) {
            match Upstreams::new(&conduct.settings, &self.folder, upstreams.generation + 1) {
                Ok(changed) => self.upstreams.store(Arc::new(changed)),
                Err(error) => tracing::warn!(%error, "the gateway's servers stay as they were"),
            }
        }
    }
}

/// How often files and settings are looked at.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// The right to look after the gateway, given back when the worker that has it ends.
pub(super) struct MaintenanceTask(Arc<GatewayState>);

impl MaintenanceTask {
    /// For the first who asks.
    pub(super) fn claim(shared: &Arc<GatewayState>) -> Option<Self> {
        (!shared.is_maintained.swap(true, Relaxed)).then(|| Self(shared.clone()))
    }

    /// Looks after it for ever.
    pub(super) async fn run(self) {
        let mut checks = None;
        loop {
            let upstreams = self.0.upstreams.load_full();
            // Checks of servers that are no longer used end with the handle of their task.
            if checks.as_ref().is_none_or(|(generation, _)| *generation != upstreams.generation) {
                checks =
                    Some((upstreams.generation, health_check::HealthCheckTasks::start(&upstreams)));
            }
            tokio::time::sleep(MAINTENANCE_INTERVAL).await;
            self.0.apply_changes();
            health_check::report_readiness(&self.0.upstreams.load(), &self.0.node.health);
        }
    }
}

impl Drop for MaintenanceTask {
    fn drop(&mut self) {
        self.0.is_maintained.store(false, Relaxed);
    }
}
