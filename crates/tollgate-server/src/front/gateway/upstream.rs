//! The servers behind the gateway, and which of them gets a request.

use super::{
    reach::{self, Reach},
    tls,
};
use crate::tls::TlsError;
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
const REST_US: u64 = 1_000_000;

/// The servers of one file, shared by all workers.
#[derive(Debug)]
pub(super) struct Upstreams {
    /// Counts the sets of servers of this process.
    pub(super) generation: u64,
    pub(super) servers: Box<[Server]>,
    pub(super) settings: Gateway,
    /// Of which file it is, to see whether another one says something else.
    written: Vec<Upstream>,
    turn: AtomicUsize,
}

/// One server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) index: usize,
    pub(super) host: Box<str>,
    pub(super) port: u16,
    /// As its URL names it.
    pub(super) authority: HeaderValue,
    pub(super) tls: Option<Encrypted>,
    pub(super) protocol: UpstreamProtocol,
    /// Whether connections to it are shared, as far as is known.
    pub(super) speaks_http2: AtomicBool,
    pub(super) idle_us: u64,
    pub(super) idle_connections: usize,
    in_flight: AtomicUsize,
    is_sick: AtomicBool,
    rests_until_us: AtomicU64,
    /// What the log has been told of connections to it, and of answers that cannot be used.
    reach: Reach,
    answers: Reach,
}

/// How to speak TLS to a server.
#[derive(Debug)]
pub(super) struct Encrypted {
    pub(super) config: Arc<ClientConfig>,
    /// The same without HTTP/2, for requests that want to speak something else afterwards.
    pub(super) only_one: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// A request that a server is busy with.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) server: usize,
}

impl Upstreams {
    pub(super) fn new(
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
            servers.push(Server::new(index, upstream, config, &gateway)?);
        }
        Ok(Self {
            generation,
            servers: servers.into(),
            settings: gateway,
            written: settings.upstream.clone(),
            turn: AtomicUsize::new(0),
        })
    }

    /// Whether they are what these settings ask for.
    pub(super) fn are_of(&self, settings: &Settings) -> bool {
        self.written == settings.upstream && self.settings == settings.gateway
    }

    /// The server for the next request, without those that were tried in vain. One that is known to be bad gets it only when
    /// all others are too.
    pub(super) fn pick(self: &Arc<Self>, tried: &[usize], now_us: u64) -> Option<Flight> {
        let turn = match self.servers.len() {
            0 | 1 => 0,
            _ => self.turn.fetch_add(1, Relaxed),
        };
        let count = self.servers.len();
        let server = (0..count)
            .map(|step| (step, &self.servers[(turn + step) % count]))
            .filter(|(_, server)| !tried.contains(&server.index))
            .min_by_key(|(step, server)| {
                let load =
                    if self.settings.round_robin { 0 } else { server.in_flight.load(Relaxed) };
                (server.is_sick.load(Relaxed), server.rests(now_us), load, *step)
            })?
            .1;
        server.in_flight.fetch_add(1, Relaxed);
        Some(Flight { upstreams: self.clone(), server: server.index })
    }
}

impl Server {
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
                Some(Encrypted { config: config.clone(), only_one: only_one.clone(), name })
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
            is_sick: AtomicBool::new(false),
            rests_until_us: AtomicU64::new(0),
            reach: Reach::default(),
            answers: Reach::default(),
        })
    }

    fn rests(&self, now_us: u64) -> bool {
        self.rests_until_us.load(Relaxed) > now_us
    }

    /// It could not be reached.
    pub(super) fn rest(&self, now_us: u64) {
        if !self.reach.is_failing() {
            self.unreached("it takes too long to connect");
        }
        self.rests_until_us.store(now_us.saturating_add(REST_US), Relaxed);
    }

    /// Notes how an attempt to connect ended, and says so where that is news.
    pub(super) fn note<T>(&self, made: &io::Result<T>) {
        match made {
            Ok(_) if self.reach.succeeded() => {
                tracing::info!(server = self.name(), "the server can be reached again");
            }
            Ok(_) => {}
            Err(error) => self.unreached(&reach::reason(error)),
        }
    }

    fn unreached(&self, reason: &str) {
        if self.reach.failed(reason, ProcessClock.now_us()) {
            tracing::warn!(server = self.name(), reason, "the server cannot be reached");
        }
    }

    /// Notes an answer that cannot be passed on.
    pub(super) fn complain(&self, reason: &str) {
        if self.answers.failed_again(reason, ProcessClock.now_us()) {
            tracing::warn!(
                server = self.name(),
                reason,
                "no answer of the server that could be used"
            );
        }
    }

    /// What the log calls it.
    pub(super) fn name(&self) -> &str {
        self.authority.to_str().unwrap_or_default()
    }

    /// What the health check found; whether that is news.
    pub(super) fn set_sick(&self, is_sick: bool) -> bool {
        self.is_sick.swap(is_sick, Relaxed) != is_sick
    }

    pub(super) fn is_sick(&self) -> bool {
        self.is_sick.load(Relaxed)
    }

    /// Whether the last attempt to connect failed.
    pub(super) fn is_unreached(&self) -> bool {
        self.reach.is_failing()
    }
}

impl Flight {
    pub(super) fn server(&self) -> &Server {
        &self.upstreams.servers[self.server]
    }
}

impl Clone for Flight {
    fn clone(&self) -> Self {
        self.server().in_flight.fetch_add(1, Relaxed);
        Self { upstreams: self.upstreams.clone(), server: self.server }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.server().in_flight.fetch_sub(1, Relaxed);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
