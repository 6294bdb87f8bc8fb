//! Upstreams: chooses the upstream and the connection of a request.

mod connect;
mod failure_log;
pub(super) mod health_check;
mod pool;
mod tls;

pub(super) use connect::connect;
pub(super) use pool::{Http2Stream, Pool, UpstreamConnection};
pub(crate) use tls::check;

use crate::tls::TlsError;
use failure_log::{FailureLog, connect_failure_reason};
use hyper::header::HeaderValue;
use rustls::{ClientConfig, pki_types::ServerName};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::{io, path::Path};
use tollgate::store::ProcessClock;
use tollgate_observe::metrics::{Metrics, ResponseCounters};
use tollgate_policy::settings::{Gateway, Settings, Upstream, UpstreamProtocol};

/// The time for which an unreachable upstream gets no requests, if there are others.
const COOLDOWN_US: u64 = 1_000_000;

/// The upstreams of one file, shared by all workers.
#[derive(Debug)]
pub(crate) struct Upstreams {
    /// Grows with each change of the upstreams.
    pub(crate) generation: u64,
    pub(crate) servers: Box<[UpstreamServer]>,
    pub(crate) settings: Gateway,
    configured: Vec<Upstream>,
    next_index: AtomicUsize,
}

/// One upstream.
#[derive(Debug)]
pub(crate) struct UpstreamServer {
    pub(crate) index: usize,
    host: Box<str>,
    port: u16,
    /// The host and port of its URL.
    pub(crate) authority: HeaderValue,
    pub(crate) tls: Option<UpstreamTls>,
    protocol: UpstreamProtocol,
    /// Whether the upstream is known to support HTTP/2, so that requests share a connection.
    pub(crate) speaks_http2: AtomicBool,
    idle_us: u64,
    idle_connections: usize,
    in_flight: AtomicUsize,
    pub(crate) responses: Arc<ResponseCounters>,
    is_unhealthy: AtomicBool,
    cooldown_until_us: AtomicU64,
    connect_failures: FailureLog,
    response_failures: FailureLog,
}

/// The TLS of an upstream.
#[derive(Debug)]
pub(crate) struct UpstreamTls {
    config: Arc<ClientConfig>,
    /// The configuration without HTTP/2, for upgrades.
    http1_config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// The upstream of a request. The request counts as in flight there until this is dropped.
#[derive(Debug)]
pub(crate) struct SelectedUpstream {
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) server: usize,
}

/// The state of an upstream, for operators.
#[derive(Debug, Serialize)]
pub(crate) struct UpstreamStatus {
    name: String,
    state: &'static str,
    in_flight: usize,
}

impl Upstreams {
    pub(crate) fn new(
        settings: &Settings,
        folder: &Path,
        metrics: &Metrics,
        generation: u64,
    ) -> Result<Self, TlsError> {
        let gateway = settings.gateway.clone();
        let mut client = None;
        let mut servers = Vec::new();
        for (index, upstream) in settings.upstream.iter().enumerate() {
            if upstream.tls && client.is_none() {
                client = Some(tls::client(&gateway.upstream_tls, folder, gateway.protocol)?);
            }
            let config = client.as_ref().filter(|_| upstream.tls);
            let server = UpstreamServer::new(index, upstream, config, &gateway, metrics)?;
            servers.push(server);
        }
        Ok(Self {
            generation,
            servers: servers.into(),
            settings: gateway,
            configured: settings.upstream.clone(),
            next_index: AtomicUsize::new(0),
        })
    }

    pub(crate) fn matches(&self, settings: &Settings) -> bool {
        self.configured == settings.upstream && self.settings == settings.gateway
    }

    /// Picks the upstream for a request, except those already tried. An unhealthy or unreachable
    /// one is picked only if all others are too.
    pub(crate) fn pick(self: &Arc<Self>, tried: &[usize], now_us: u64) -> Option<SelectedUpstream> {
        let count = self.servers.len();
        let turn = if count > 1 { self.next_index.fetch_add(1, Relaxed) } else { 0 };
        let (_, server) = (0..count)
            .map(|step| (step, &self.servers[(turn + step) % count]))
            .filter(|(_, server)| !tried.contains(&server.index))
            .min_by_key(|(step, server)| {
                let load =
                    if self.settings.round_robin { 0 } else { server.in_flight.load(Relaxed) };
                let is_cooling_down = server.cooldown_until_us.load(Relaxed) > now_us;
                (server.is_unhealthy(), is_cooling_down, load, *step)
            })?;
        server.in_flight.fetch_add(1, Relaxed);
        Some(SelectedUpstream { upstreams: self.clone(), server: server.index })
    }
}

impl UpstreamServer {
    fn new(
        index: usize,
        upstream: &Upstream,
        config: Option<&(Arc<ClientConfig>, Arc<ClientConfig>)>,
        gateway: &Gateway,
        metrics: &Metrics,
    ) -> Result<Self, TlsError> {
        let invalid = || TlsError::Name(upstream.host.clone());
        let host = &upstream.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        let authority = match (upstream.tls, upstream.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        };
        let tls = match config.cloned() {
            None => None,
            Some((config, http1_config)) => {
                let name = ServerName::try_from(upstream.host.to_string());
                Some(UpstreamTls { config, http1_config, name: name.map_err(|_| invalid())? })
            }
        };
        Ok(Self {
            index,
            responses: metrics.responses(Some(&authority)),
            host: upstream.host.clone(),
            port: upstream.port,
            authority: HeaderValue::try_from(authority).map_err(|_| invalid())?,
            tls,
            protocol: gateway.protocol,
            speaks_http2: AtomicBool::new(gateway.protocol == UpstreamProtocol::Http2),
            idle_us: u64::try_from(gateway.idle.as_micros()).unwrap_or(u64::MAX),
            idle_connections: gateway.idle_connections as usize,
            in_flight: AtomicUsize::new(0),
            is_unhealthy: AtomicBool::new(false),
            cooldown_until_us: AtomicU64::new(0),
            connect_failures: FailureLog::default(),
            response_failures: FailureLog::default(),
        })
    }

    /// Starts the cool-down after a failure to connect.
    pub(crate) fn mark_unreachable(&self, now_us: u64) {
        if !self.is_unreachable() {
            self.log_unreachable("it takes too long to connect");
        }
        self.cooldown_until_us.store(now_us.saturating_add(COOLDOWN_US), Relaxed);
    }

    /// Records the result of an attempt to connect, and logs a change.
    fn record_connect<T>(&self, made: &io::Result<T>) {
        match made {
            Ok(_) if self.connect_failures.record_success() => {
                tracing::info!(server = self.name(), "the upstream can be reached again");
            }
            Ok(_) => {}
            Err(error) => self.log_unreachable(&connect_failure_reason(error)),
        }
    }

    fn log_unreachable(&self, reason: &str) {
        if self.connect_failures.record_failure(reason, ProcessClock.now_us()) {
            tracing::warn!(server = self.name(), reason, "the upstream cannot be reached");
        }
    }

    /// Logs a response that cannot be forwarded.
    pub(crate) fn log_bad_response(&self, reason: &str) {
        // Failures of responses are independent, so none continues an earlier one.
        self.response_failures.record_success();
        if self.response_failures.record_failure(reason, ProcessClock.now_us()) {
            tracing::warn!(server = self.name(), reason, "the upstream gave no usable response");
        }
    }

    /// The name in the log.
    pub(crate) fn name(&self) -> &str {
        self.authority.to_str().unwrap_or_default()
    }

    pub(super) fn status(&self, now_us: u64) -> UpstreamStatus {
        let is_cooling_down = self.cooldown_until_us.load(Relaxed) > now_us;
        let state = match (self.is_unhealthy(), is_cooling_down || self.is_unreachable()) {
            (true, _) => "unhealthy",
            (false, true) => "unreachable",
            (false, false) => "up",
        };
        UpstreamStatus {
            name: self.name().to_owned(),
            state,
            in_flight: self.in_flight.load(Relaxed),
        }
    }

    fn is_unhealthy(&self) -> bool {
        self.is_unhealthy.load(Relaxed)
    }

    /// Whether the last attempt to connect failed.
    fn is_unreachable(&self) -> bool {
        self.connect_failures.is_failing()
    }
}

impl SelectedUpstream {
    pub(crate) fn server(&self) -> &UpstreamServer {
        &self.upstreams.servers[self.server]
    }
}

impl Clone for SelectedUpstream {
    fn clone(&self) -> Self {
        self.server().in_flight.fetch_add(1, Relaxed);
        Self { upstreams: self.upstreams.clone(), server: self.server }
    }
}

impl Drop for SelectedUpstream {
    fn drop(&mut self) {
        self.server().in_flight.fetch_sub(1, Relaxed);
    }
}
