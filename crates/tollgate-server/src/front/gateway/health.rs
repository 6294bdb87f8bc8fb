//! What looks after the gateway while requests pass: servers are asked how they are, certificates
//! and settings that have changed are put in force. One worker of the process does it, whichever is
//! first.

use super::{
    GatewayState,
    connect::connect,
    exchange,
    pool::UpstreamConnection,
    reach,
    upstream::{UpstreamServer, Upstreams},
};
use crate::node::health::Health;
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tollgate_policy::settings::HealthCheck;

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
                checks = Some((upstreams.generation, HealthCheckTasks::start(&upstreams)));
            }
            sleep(MAINTENANCE_INTERVAL).await;
            self.0.apply_changes();
            report_readiness(&self.0.upstreams.load(), &self.0.node.health);
        }
    }
}

/// The subject under which `/readyz` tells of upstreams.
const UPSTREAM: &str = "upstream";

/// Tells `/readyz` when no upstream can take a request. With health checks the node is then not
/// ready. Without them only the last attempts are known, so the node stays ready and the next
/// request tries again.
fn report_readiness(upstreams: &Upstreams, health: &Health) {
    let servers = || upstreams.servers.iter();
    let names = || servers().map(|server| server.name()).collect::<Vec<_>>().join(", ");
    match &upstreams.settings.health {
        _ if upstreams.servers.is_empty() => health.clear(UPSTREAM),
        Some(_) if servers().all(UpstreamServer::is_unhealthy) => {
            health.fail(UPSTREAM, format!("every upstream fails its health check: {}", names()));
        }
        None if servers().all(UpstreamServer::is_unreachable) => {
            health.degrade(UPSTREAM, format!("no upstream could be reached: {}", names()));
        }
        _ => health.clear(UPSTREAM),
    }
}

impl Drop for MaintenanceTask {
    fn drop(&mut self) {
        self.0.is_maintained.store(false, Relaxed);
    }
}

/// The checks of one set of servers.
struct HealthCheckTasks(Vec<tokio::task::JoinHandle<()>>);

impl HealthCheckTasks {
    fn start(upstreams: &Arc<Upstreams>) -> Self {
        let Some(check) = &upstreams.settings.health else { return Self(Vec::new()) };
        let one = |server: usize| {
            let (upstreams, check) = (upstreams.clone(), check.clone());
            tokio::task::spawn_local(
                async move { run_health_check(&upstreams, server, &check).await },
            )
        };
        Self((0..upstreams.servers.len()).map(one).collect())
    }
}

impl Drop for HealthCheckTasks {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Asks one server again and again how it is.
async fn run_health_check(upstreams: &Upstreams, server: usize, check: &HealthCheck) {
    let server = &upstreams.servers[server];
    let (mut good, mut bad) = (0, 0);
    loop {
        let found = timeout(check.timeout, probe(server, &check.path)).await;
        let found = found.unwrap_or_else(|_| Err(format!("no answer within {:?}", check.timeout)));
        (good, bad) = if found.is_ok() { (good + 1, 0) } else { (0, bad + 1) };
        let change = match (server.is_unhealthy(), good, bad) {
            (true, good, _) if good >= check.healthy_after => Some(false),
            (false, _, bad) if bad >= check.unhealthy_after => Some(true),
            _ => None,
        };
        if let Some(is_sick) = change
            && server.set_unhealthy(is_sick)
        {
            let server = server.name();
            match found {
                Err(reason) => tracing::warn!(
                    server,
                    reason,
                    "the server fails its health check and gets no requests"
                ),
                Ok(()) => tracing::info!(server, "the server is healthy again"),
            }
        }
        sleep(check.interval).await;
    }
}

/// Asks an upstream for `path`; why it is not well, unless it answers with 200 to 399.
async fn probe(server: &UpstreamServer, path: &str) -> Result<(), String> {
    let connected = connect(server, false).await;
    let status = match connected.map_err(|error| reach::connect_failure_reason(&error))? {
        UpstreamConnection::Http1(stream) => {
            exchange::probe_http1(stream, server.authority.as_bytes(), path).await?
        }
        UpstreamConnection::Http2(stream) => exchange::probe_http2(stream, server, path).await?,
    };
    match status.is_success() || status.is_redirection() {
        true => Ok(()),
        false => Err(format!("it answers with {}", status.as_u16())),
    }
}
