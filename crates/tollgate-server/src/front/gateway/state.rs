//! State shared by all workers, and the task that keeps it up to date.

use super::respond::status;
use super::upstream::{UpstreamStatus, Upstreams, health_check};
use crate::tls::{Certificate, TlsError, TlsListener};
use crate::{Node, PolicyFile, front::address_throttle::AddressThrottle};
use arc_swap::ArcSwap;
use hyper::header::HeaderName;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate::store::ProcessClock;
use tollgate_observe::metrics::ResponseCounters;
use tollgate_tower::HttpGate;

/// The interval of checks for changed files and settings.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// State shared by all workers.
#[derive(Debug)]
pub(crate) struct GatewayState {
    pub(super) node: Arc<Node>,
    folder: PathBuf,
    pub(super) upstreams: ArcSwap<Upstreams>,
    pub(super) certificate: Option<Certificate>,
    is_maintained: AtomicBool,
    /// The settings applied last, successfully or not.
    last_file: Mutex<Option<Arc<PolicyFile>>>,
    pub(super) http_gate: HttpGate<Node>,
    /// Counters of answers that came from no upstream.
    pub(super) own_responses: Arc<ResponseCounters>,
    /// Limits how often an address may call `/.well-known/ratelimit`.
    pub(super) status_guard: AddressThrottle,
}

impl GatewayState {
    /// Creates the gateway from a node's settings. Relative paths start in `folder`.
    pub(crate) fn new(node: Arc<Node>, folder: &Path) -> Result<Self, TlsError> {
        let file = node.file();
        let certificate = file.settings.gateway.tls.as_ref();
        let certificate = certificate
            .map(|files| Certificate::new(files, folder, TlsListener::Gateway))
            .transpose()?;
        let upstreams = Upstreams::new(&file.settings, folder, &node.metrics, 1)?;
        drop(file);
        Ok(Self {
            http_gate: HttpGate::new(node.clone()),
            own_responses: node.metrics.responses(None),
            node,
            folder: folder.into(),
            upstreams: ArcSwap::from_pointee(upstreams),
            certificate,
            is_maintained: AtomicBool::new(false),
            last_file: Mutex::default(),
            status_guard: AddressThrottle::per_minute(status::PER_MINUTE, ProcessClock),
        })
    }

    /// The state of each upstream, for operators.
    pub(crate) fn upstream_statuses(&self, now_us: u64) -> Vec<UpstreamStatus> {
        self.upstreams.load().servers.iter().map(|server| server.status(now_us)).collect()
    }

    /// Whether decisions read a header with this name.
    pub(super) fn reads(&self, name: &HeaderName) -> bool {
        self.http_gate.reader().reads(&self.node.gate.rules(), name)
    }

    /// Whether a service could confuse a header with this name with one that decisions read.
    pub(super) fn is_alias(&self, name: &HeaderName) -> bool {
        self.http_gate.reader().is_alias(&self.node.gate.rules(), name)
    }

    /// Applies changes of certificates and settings.
    fn apply_changes(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.poll(&self.node.health, ProcessClock.now_us());
        }
        let file = self.node.file();
        let upstreams = self.upstreams.load();
        let mut last = tollgate_net::lock(&self.last_file);
        let is_applied = last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &file));
        if is_applied || file.settings.upstream.is_empty() {
            return;
        }
        *last = Some(Arc::clone(&file));
        if !upstreams.matches(&file.settings) {
            let (metrics, generation) = (&self.node.metrics, upstreams.generation + 1);
            match Upstreams::new(&file.settings, &self.folder, metrics, generation) {
                Ok(changed) => self.upstreams.store(Arc::new(changed)),
                Err(error) => {
                    tracing::warn!(%error, "cannot change the upstreams; keeping the old ones")
                }
            }
        }
    }
}

/// The maintenance of the gateway, run by the first worker that claims it.
pub(super) struct MaintenanceTask(Arc<GatewayState>);

impl MaintenanceTask {
    pub(super) fn claim(shared: &Arc<GatewayState>) -> Option<Self> {
        (!shared.is_maintained.swap(true, Relaxed)).then(|| Self(shared.clone()))
    }

    pub(super) async fn run(self) {
        let mut checks = None;
        loop {
            let upstreams = self.0.upstreams.load_full();
            if checks.as_ref().is_none_or(|(generation, _)| *generation != upstreams.generation) {
                // Replacing the set ends the old health checks.
                checks = Some((upstreams.generation, health_check::start_checks(&upstreams)));
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
