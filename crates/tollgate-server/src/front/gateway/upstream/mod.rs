//! Upstreams: which of them gets a request, and by which connection.

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
use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tollgate::ProcessClock;
use tollgate_policy::settings::{Gateway, Settings, Upstream, UpstreamProtocol};

/// How long a server that could not be reached is left alone while there are others.
const COOLDOWN_US: u64 = 1_000_000;

/// The servers of one file, shared by all workers.
#[derive(Debug)]
pub(crate) struct Upstreams {
    /// Counts the sets of servers of this process.
    pub(crate) generation: u64,
    pub(crate) servers: Box<[UpstreamServer]>,
    pub(crate) settings: Gateway,
    /// Of which file it is, to see whether another one says something else.
    configured: Vec<Upstream>,
    next_index: AtomicUsize,
}

/// One server.
#[derive(Debug)]
pub(crate) struct UpstreamServer {
    pub(crate) index: usize,
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    /// As its URL names it.
    pub(crate) authority: HeaderValue,
    pub(crate) tls: Option<UpstreamTls>,
    pub(crate) protocol: UpstreamProtocol,
    /// Whether connections to it are shared, as far as is known.
    pub(crate) speaks_http2: AtomicBool,
    pub(crate) idle_us: u64,
    pub(crate) idle_connections: usize,
    in_flight: AtomicUsize,
    is_unhealthy: AtomicBool,
    cooldown_until_us: AtomicU64,
    /// What the log has been told of connections to it, and of answers that cannot be used.
    connect_failures: FailureLog,
    response_failures: FailureLog,
}

/// How to speak TLS to a server.
#[derive(Debug)]
pub(crate) struct UpstreamTls {
    pub(crate) config: Arc<ClientConfig>,
    /// The same without HTTP/2, for requests that want to speak something else afterwards.
    pub(crate) http1_config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// A request that a server is busy with.
#[derive(Debug)]
pub(crate) struct SelectedUpstream {
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) server: usize,
}

impl Upstreams {
    pub(crate) fn new(
        settings: &Settings,
        folder: &Path,
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
            servers.push(UpstreamServer::new(index, upstream, config, &gateway)?);
        }
        Ok(Self {
            generation,
            servers: servers.into(),
            settings: gateway,
            configured: settings.upstream.clone(),
            next_index: AtomicUsize::new(0),
        })
    }

    /// Whether they are what these settings ask for.
    pub(crate) fn matches(&self, settings: &Settings) -> bool {
        self.configured == settings.upstream && self.settings == settings.gateway
    }

    /// The server for the next request, without those that were tried in vain. One that is known to
    /// be bad gets it only when all others are too.
    pub(crate) fn pick(self: &Arc<Self>, tried: &[usize], now_us: u64) -> Option<SelectedUpstream> {
        let turn = match self.servers.len() {
            0 | 1 => 0,
            _ => self.next_index.fetch_add(1, Relaxed),
        };
        let count = self.servers.len();
        let server = (0..count)
            .map(|step| (step, &self.servers[(turn + step) % count]))
            .filter(|(_, server)| !tried.contains(&server.index))
            .min_by_key(|(step, server)| {
                let load =
                    if self.settings.round_robin { 0 } else { server.in_flight.load(Relaxed) };
                (server.is_unhealthy.load(Relaxed), server.is_cooling_down(now_us), load, *step)
            })?
            .1;
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
    ) -> Result<Self, TlsError> {
        let host = match upstream.host.contains(':') {
            true => format!("[{}]", upstream.host),
            false => upstream.host.to_string(),
        };
        let authority = match (upstream.tls, upstream.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        };
        let tls = match config {
            None => None,
            Some((config, only_one)) => {
                let name = ServerName::try_from(upstream.host.to_string());
                let name = name.map_err(|_| TlsError::Name(upstream.host.clone()))?;
                Some(UpstreamTls { config: config.clone(), http1_config: only_one.clone(), name })
            }
        };
        Ok(Self {
            index,
            host: upstream.host.clone(),
            port: upstream.port,
            authority: HeaderValue::try_from(authority)
                .map_err(|_| TlsError::Name(upstream.host.clone()))?,
            tls,
            protocol: gateway.protocol,
            speaks_http2: AtomicBool::new(gateway.protocol == UpstreamProtocol::Http2),
            idle_us: micros(gateway.idle),
            idle_connections: gateway.idle_connections as usize,
            in_flight: AtomicUsize::new(0),
            is_unhealthy: AtomicBool::new(false),
            cooldown_until_us: AtomicU64::new(0),
            connect_failures: FailureLog::default(),
            response_failures: FailureLog::default(),
        })
    }

    fn is_cooling_down(&self, now_us: u64) -> bool {
        self.cooldown_until_us.load(Relaxed) > now_us
    }

    /// It could not be reached.
    pub(crate) fn mark_unreachable(&self, now_us: u64) {
        if !self.connect_failures.is_failing() {
            self.log_unreachable("it takes too long to connect");
        }
        self.cooldown_until_us.store(now_us.saturating_add(COOLDOWN_US), Relaxed);
    }

    /// Notes how an attempt to connect ended, and says so where that is news.
    pub(crate) fn record_connect<T>(&self, made: &io::Result<T>) {
        match made {
            Ok(_) if self.connect_failures.record_success() => {
                tracing::info!(server = self.name(), "the server can be reached again");
            }
            Ok(_) => {}
            Err(error) => self.log_unreachable(&connect_failure_reason(error)),
        }
    }

    fn log_unreachable(&self, reason: &str) {
        if self.connect_failures.record_failure(reason, ProcessClock.now_us()) {
            tracing::warn!(server = self.name(), reason, "the server cannot be reached");
        }
    }

    /// Notes an answer that cannot be passed on.
    pub(crate) fn log_bad_response(&self, reason: &str) {
        if self.response_failures.record_repeated_failure(reason, ProcessClock.now_us()) {
            tracing::warn!(
                server = self.name(),
                reason,
                "no answer of the server that could be used"
            );
        }
    }

    /// What the log calls it.
    pub(crate) fn name(&self) -> &str {
        self.authority.to_str().unwrap_or_default()
    }

    /// What the health check found; whether that is news.
    pub(crate) fn set_unhealthy(&self, is_sick: bool) -> bool {
        self.is_unhealthy.swap(is_sick, Relaxed) != is_sick
    }

    pub(crate) fn is_unhealthy(&self) -> bool {
        self.is_unhealthy.load(Relaxed)
    }

    /// Whether the last attempt to connect failed.
    pub(crate) fn is_unreachable(&self) -> bool {
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

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
