//! Redis, configured from a policy file.

use super::StorageError;
use super::observer::StoreObserver;
use crate::config::resolve_secret;
use std::ffi::OsString;
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tollgate::store::RedisStore;
use tollgate::store::redis::{Endpoint, RedisOptions, Tls};
use tollgate_policy::settings::{self, Redis, RedisServer, Secret};

/// A Redis store, and the thread of its connections.
#[derive(Debug)]
pub struct RedisStorage {
    // Declared before the thread, so that the store's tasks end by themselves.
    pub(super) store: RedisStore,
    pub(super) observer: Arc<StoreObserver>,
    /// Connections of each worker to each server.
    pub(super) connections_per_worker: usize,
    pub(super) breaker_errors: u32,
    thread: StoreThread,
}

impl RedisStorage {
    /// Starts connecting, and returns immediately. Relative paths start in `beside`.
    pub(super) fn start(
        settings: &Redis,
        beside: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, StorageError> {
        let found = |secret: &Option<Secret>, field| {
            let secret = secret.as_ref().map(|secret| resolve_secret(secret, field, &variable));
            secret.transpose().map_err(StorageError::Secret)
        };
        let password = found(&settings.password, "store.redis.password")?;
        let secret = found(&settings.secret, "store.redis.secret")?;
        let tls = settings.tls.as_ref().map(|tls| self::read_tls_files(tls, beside)).transpose()?;
        let mut endpoint = endpoint(settings, password, tls);
        if let RedisServer::Sentinel { username, password, .. } = &settings.server {
            let password = found(password, "store.redis.sentinel.password")?;
            endpoint =
                endpoint.sentinel_credentials(username.as_deref().map(String::from), password);
        }
        let thread = StoreThread::start().map_err(StorageError::System)?;
        let observer = Arc::new(StoreObserver::default());
        let store = {
            let _inside = thread.handle.enter();
            RedisStore::open(&endpoint, options(settings, secret, &observer))
        };
        let store = store.map_err(|error| StorageError::Invalid(error.to_string().into()))?;
        // The workers divide the configured connections, at least one each. All other threads share
        // one more.
        let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
        Ok(Self {
            store,
            observer,
            connections_per_worker: (settings.connections as usize / workers).max(1),
            breaker_errors: settings.breaker_errors,
            thread,
        })
    }

    /// Returns the units of leases, for a process that is about to end.
    pub(super) fn release_leases(&self, within: Duration) {
        self.thread.handle.block_on(self.store.release_leases(within));
    }
}

fn read_tls_files(settings: &settings::Tls, beside: &Path) -> Result<Tls, StorageError> {
    let read = |file: &str| {
        let path = beside.join(file);
        std::fs::read(&path).map_err(|error| StorageError::Unreadable(path, error))
    };
    let mut tls = Tls::default();
    tls.ca = settings.ca.as_deref().map(read).transpose()?;
    tls.client = match &settings.identity {
        Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
        None => None,
    };
    Ok(tls)
}

/// The address and the credentials.
fn endpoint(settings: &Redis, password: Option<String>, tls: Option<Tls>) -> Endpoint {
    let nodes = |nodes: &[(Box<str>, u16)]| {
        nodes.iter().map(|(host, port)| (host.to_string(), *port)).collect::<Vec<_>>()
    };
    let endpoint = match &settings.server {
        RedisServer::Tcp { host, port, database } => {
            Endpoint::tcp(host.to_string(), *port).database(*database)
        }
        RedisServer::Unix { path, database } => Endpoint::unix(&**path).database(*database),
        RedisServer::Sentinel { master, nodes: all, .. } => {
            Endpoint::sentinel(master.to_string(), nodes(all))
        }
        RedisServer::Cluster { nodes: all } => Endpoint::cluster(nodes(all)),
        // A kind of server that this version does not know: calls fail with an error.
        _ => Endpoint::cluster([]),
    };
    let endpoint = endpoint.credentials(settings.username.as_deref().map(String::from), password);
    if let Some(tls) = tls { endpoint.tls(tls) } else { endpoint }
}

fn options(
    settings: &Redis,
    secret: Option<String>,
    observer: &Arc<StoreObserver>,
) -> RedisOptions {
    let mut options = RedisOptions::default();
    options.secret = secret.map(String::into_bytes).unwrap_or_default();
    options.prefix = settings.prefix.to_string();
    options.caller_time = settings.caller_time;
    options.deadline = settings.deadline;
    options.connections = 1;
    options.in_flight = settings.in_flight as usize;
    options.replica_reads = settings.replica_reads;
    options.breaker_errors = settings.breaker_errors;
    options.breaker_probe = settings.breaker_probe;
    options.observer = Some(observer.clone());
    options
}

/// The thread of a store's connections, with its own runtime. It ends when this is dropped.
#[derive(Debug)]
struct StoreThread {
    /// The runtime of the store's tasks.
    handle: Handle,
    /// Dropping this wakes the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StoreThread {
    fn start() -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let run = move || {
            let _ = runtime.block_on(stopped);
            // A name lookup cannot be cancelled; the shutdown does not wait for it.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("store".into()).spawn(run)?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already logged.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
