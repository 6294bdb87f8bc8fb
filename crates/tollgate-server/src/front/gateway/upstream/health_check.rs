//! Health checks of upstreams, and their state in `/readyz`.

use super::{
    UpstreamConnection, UpstreamServer, Upstreams, connect, failure_log::connect_failure_reason,
};
use crate::front::gateway::exchange;
use std::sync::{Arc, atomic::Ordering::Relaxed};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tollgate_net::Health;
use tollgate_policy::settings::HealthCheck;

/// The subject of upstreams in `/readyz`.
const UPSTREAM: &str = "upstream";

/// Reports in `/readyz` that no upstream can take a request. With health checks, the node is then
/// not ready. Without them, only the last attempts are known, so the node stays ready and the next
/// request tries again.
pub(crate) fn report_readiness(upstreams: &Upstreams, health: &Health) {
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

/// Starts a task for each upstream with a health check. Dropping the set ends the tasks.
pub(crate) fn start_checks(upstreams: &Arc<Upstreams>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    if let Some(check) = &upstreams.settings.health {
        for index in 0..upstreams.servers.len() {
            let (upstreams, check) = (upstreams.clone(), check.clone());
            tasks.spawn_local(async move { run_check(&upstreams.servers[index], &check).await });
        }
    }
    tasks
}

async fn run_check(server: &UpstreamServer, check: &HealthCheck) {
    let (mut good, mut bad) = (0, 0);
    loop {
        let found = timeout(check.timeout, probe(server, &check.path)).await;
        let found =
            found.unwrap_or_else(|_| Err(format!("no response within {:?}", check.timeout)));
        (good, bad) = if found.is_ok() { (good + 1, 0) } else { (0, bad + 1) };
        let is_unhealthy = server.is_unhealthy();
        if is_unhealthy && good >= check.healthy_after
            || !is_unhealthy && bad >= check.unhealthy_after
        {
            server.is_unhealthy.store(found.is_err(), Relaxed);
            let server = server.name();
            match found {
                Err(reason) => {
                    tracing::warn!(server, reason, "the upstream fails its health check")
                }
                Ok(()) => tracing::info!(server, "the upstream is healthy again"),
            }
        }
        sleep(check.interval).await;
    }
}

/// Requests `path` from an upstream. A status from 200 to 399 is healthy; otherwise returns the
/// reason.
async fn probe(server: &UpstreamServer, path: &str) -> Result<(), String> {
    let connected = connect(server, false).await;
    let status = match connected.map_err(|error| connect_failure_reason(&error))? {
        UpstreamConnection::Http1(stream) => {
            exchange::probe_http1(stream, server.authority.as_bytes(), path).await?
        }
        UpstreamConnection::Http2(stream) => exchange::probe_http2(stream, server, path).await?,
    };
    if status.is_success() || status.is_redirection() {
        return Ok(());
    }
    Err(format!("it responds with {}", status.as_u16()))
}
