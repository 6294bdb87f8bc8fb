//! Starts and stops a process: its node, its listeners and the control thread.

mod fd_limits;

use crate::config::{Config, ConfigError, ConfigErrorKind, LoadedConfig, with_policy_position};
use crate::front::resp::{self, Resp};
use crate::front::{
    admin::{Admin, AdminHandler},
    gateway,
    grpc::RlsHandler,
    http::CheckApi,
};
use crate::node::Node;
use crate::reload::{self, ControlThread, ReloadHandle, Reloader};
use crate::tls::{Certificate, TlsError, TlsListener};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tollgate_net::{
    BindError, FrontendServer, InheritError, InheritedSockets, Limits, Listener, ListenerOptions,
};
use tollgate_observe::metrics::MetricsPusher;
use tollgate_observe::otlp::OtlpOptions;
use tollgate_observe::usage::{UsageError, UsageThread};
use tollgate_policy::settings::{Front, ListenAddress, Settings};

/// Starts a node.
#[derive(Debug)]
pub struct Server;

/// The time limit for returning leased units at the end.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// The time limit for flushing each log at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The time limit of the last push of metrics at the end.
const LAST_METRICS_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that the start waits for the fleet's mode overrides.
const FLEET_MODES_TIMEOUT: Duration = Duration::from_millis(500);

/// A running node. Dropping it stops the node immediately; [`drain`](Self::drain) lets requests
/// finish.
#[derive(Debug)]
pub struct RunningServer {
    addresses: Vec<(Front, SocketAddr)>,
    /// Separate from `admin`, so that health can be read during a drain.
    traffic: FrontendServer,
    admin: FrontendServer,
    control: ControlThread,
    usage: Option<UsageThread>,
    pusher: Option<MetricsPusher>,
    /// The start of the node's counters.
    start_us: u64,
    node: Arc<Node>,
}

/// The reason why a node does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration is unusable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A front end cannot listen.
    #[error("{0}")]
    Bind(BindError),
    /// A name in `listen` cannot be resolved.
    #[error(
        "`listen.{}`: cannot find the address of `{}`: {}; check the name, or write an address such as 127.0.0.1:8081",
        .0.name(), .1, .2
    )]
    Resolve(Front, Box<str>, io::Error),
    /// An inherited socket is unusable.
    #[error("{0}")]
    Inherit(InheritError),
    /// The system has no thread or file descriptor left.
    #[error("cannot start: {0}")]
    System(io::Error),
}

impl Server {
    /// Starts a node from `config`. All listeners are open when this returns.
    ///
    /// # Errors
    ///
    /// When the configuration is unusable, an address is in use, or the system has no thread or
    /// file descriptor left.
    pub fn start(config: Config) -> Result<RunningServer, StartError> {
        Self::start_on(config, InheritedSockets::default())
    }

    /// Starts a node, and uses inherited sockets for the listeners that match them.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and when no listener has the address of a socket.
    pub fn start_on(
        config: Config,
        inherited: InheritedSockets,
    ) -> Result<RunningServer, StartError> {
        let loaded = config.load()?;
        let node = Node::in_folder(config.folder(), loaded.compiled.clone(), loaded.setup())
            .map_err(|error| StartError::Config(error.of(config.name())))?;
        node.set_tokens(loaded.keys.as_ref().map(|keys| keys.verifier.clone()));
        let password = config.password(&loaded.compiled.settings)?;
        node.resp_auth.set_password(password);
        let secret = config.keys_secret(&loaded.compiled.settings)?;
        node.keys.configure(secret.as_deref());
        let node = Arc::new(node);
        let listeners = bind(&loaded.compiled.settings, inherited)?;
        let (folder, name) = (config.folder().to_owned(), config.name().to_owned());
        let addresses =
            listeners.iter().map(|(front, listener)| (*front, listener.address())).collect();
        let reload_channel = reload::reload_channel(&config);
        let listens = |wanted| listeners.iter().any(|(front, _)| *front == wanted);
        let access = listens(Front::Admin).then(|| config.access(&loaded.compiled.settings));
        let access = access.transpose()?;
        let admin = access.map(|access| {
            Arc::new(Admin::new(node.clone(), access, Arc::new(reload_channel.0.clone())))
        });
        let gateway = listens(Front::Gateway)
            .then(|| gateway::GatewayState::new(node.clone(), config.folder()));
        let gateway = gateway.transpose();
        let gateway = gateway.map_err(|error| tls_config_error(&config, &loaded, error))?;
        let gateway = gateway.map(Arc::new);
        if let (Some(admin), Some(gateway)) = (&admin, &gateway) {
            admin.set_gateway(gateway.clone());
        }
        let certificate = certificate(&config, &loaded)?;
        let origin = reload_channel.0.shared_origin();
        let reloader = Reloader::new(node.clone(), admin.clone(), origin, config, loaded)
            .with_certificate(certificate.clone());
        reloader.announce();
        log_missing_admin(&node.file().settings);
        let control = ControlThread::start(node.clone(), reloader, reload_channel)
            .map_err(StartError::System)?;
        node.wait_for_fleet_modes(FLEET_MODES_TIMEOUT);
        let usage = start_usage(&node, &folder)
            .map_err(|error| StartError::Config(ConfigErrorKind::Usage(error).of(name)))?;
        let start_us = node.clock.now_us();
        let (traffic, admin) = start_servers(&node, admin, gateway, certificate, listeners)
            .map_err(StartError::System)?;
        node.health.set_serving(true);
        let pusher = None;
        Ok(RunningServer { addresses, traffic, admin, control, usage, pusher, start_us, node })
    }
}

/// Starts the usage trail, if the file has one.
fn start_usage(node: &Arc<Node>, folder: &Path) -> Result<Option<UsageThread>, UsageError> {
    let file = node.file();
    let both = node.usage.clone().zip(file.settings.usage.as_ref());
    both.map(|(trail, settings)| UsageThread::start(node.clone(), trail, settings, folder))
        .transpose()
}

/// The certificate of `listen.grpc`, if it uses TLS.
fn certificate(
    config: &Config,
    loaded: &LoadedConfig,
) -> Result<Option<Arc<Certificate>>, StartError> {
    let settings = &loaded.compiled.settings;
    let listens = settings.listeners.iter().any(|one| one.front == Front::Grpc);
    let files = settings.grpc_tls.as_ref().filter(|_| listens);
    let made = files.map(|files| Certificate::new(files, config.folder(), TlsListener::Grpc));
    let made = made.transpose().map_err(|error| tls_config_error(config, loaded, error))?;
    Ok(made.map(Arc::new))
}

fn tls_config_error(config: &Config, loaded: &LoadedConfig, error: TlsError) -> StartError {
    let error = ConfigErrorKind::Tls(error).of(config.name());
    StartError::Config(with_policy_position(config, &loaded.compiled, error))
}

/// Binds every listener before the first is served.
fn bind(
    settings: &Settings,
    mut inherited: InheritedSockets,
) -> Result<Vec<(Front, Listener)>, StartError> {
    let mut bind = |front: Front, wanted: &ListenAddress| -> Result<_, StartError> {
        let address = resolve(front, wanted)?;
        let named = |error: BindError| match wanted {
            ListenAddress::Ip(_) => error,
            ListenAddress::Name(name, _) => BindError { name: Some(name.clone()), ..error },
        };
        let listener = match inherited.take(front, address) {
            Some(socket) => Listener::adopt(front, socket).map_err(StartError::System)?,
            None => Listener::bind(front, address).map_err(named).map_err(StartError::Bind)?,
        };
        Ok((front, listener))
    };
    let all = settings.listeners.iter().map(|listener| bind(listener.front, &listener.address));
    let all = all.collect::<Result<_, _>>()?;
    inherited.ensure_all_claimed().map_err(StartError::Inherit)?;
    Ok(all)
}

/// The address to bind. A name stands for its first IPv4 address, else its first address. Clients
/// that use the name try all addresses.
fn resolve(front: Front, address: &ListenAddress) -> Result<SocketAddr, StartError> {
    let (name, port) = match address {
        ListenAddress::Ip(address) => return Ok(*address),
        ListenAddress::Name(name, port) => (name, *port),
    };
    let failed = |cause| StartError::Resolve(front, name.clone(), cause);
    let found: Vec<SocketAddr> = (&**name, port).to_socket_addrs().map_err(failed)?.collect();
    let first = found.iter().find(|one| one.is_ipv4()).or(found.first()).copied();
    first.ok_or_else(|| failed(io::Error::other("the name has no address")))
}

/// Logs that health and metrics are off, if there is no admin listener.
fn log_missing_admin(settings: &Settings) {
    if settings.listeners.iter().all(|listener| listener.front != Front::Admin) {
        tracing::info!(
            "no admin listener: /metrics, /healthz, /readyz and the admin API are off; \
             to enable them, add `admin: 127.0.0.1:8090` to `listen`"
        );
    }
}

/// Starts one server for traffic and one for the admin API.
fn start_servers(
    node: &Arc<Node>,
    admin: Option<Arc<Admin>>,
    gateway: Option<Arc<gateway::GatewayState>>,
    certificate: Option<Arc<Certificate>>,
    listeners: Vec<(Front, Listener)>,
) -> io::Result<(FrontendServer, FrontendServer)> {
    let fronts = listeners.iter().filter(|(front, _)| *front != Front::Admin).count();
    let (limits, admin_limits) = fd_limits::connection_limits(&Limits::default(), fronts);
    let store_node = node.clone();
    let mut traffic = FrontendServer::builder()
        .watched_by(node.threads.clone())
        .prepare(move || store_node.gate.store().use_worker_connections());
    let mut admin_server =
        FrontendServer::builder().watched_by(node.threads.clone()).workers(NonZero::<usize>::MIN);
    for (front, listener) in listeners {
        match (front, admin.clone(), gateway.clone()) {
            (Front::Admin, Some(admin), _) => {
                let limits = AdminHandler::limits(&admin_limits);
                admin_server =
                    admin_server.front(listener, limits, move || AdminHandler(admin.clone()));
            }
            (Front::Gateway, _, Some(gateway)) => {
                let settings = &node.file().settings.gateway;
                let intake = ListenerOptions { proxy_protocol: settings.proxy_protocol };
                let limits = Limits {
                    head: settings.client_head,
                    body: settings.client_body,
                    idle: settings.client_idle,
                    ..limits.clone()
                };
                let handler = move || gateway::Gateway::new(gateway.clone());
                traffic = traffic.front_with(listener, limits, intake, handler);
            }
            (Front::Grpc, _, _) => {
                let (node, certificate) = (node.clone(), certificate.clone());
                let rls_limits = RlsHandler::limits(&limits);
                let handler_limits = rls_limits.clone();
                let rls = move || {
                    RlsHandler::new(node.clone(), &handler_limits).with_tls(certificate.clone())
                };
                traffic = traffic.front(listener, rls_limits, rls);
            }
            (Front::Resp, _, _) => {
                let (resp_limits, node) = (Resp::limits(&limits), node.clone());
                let shared = resp::RespState::new(node);
                traffic =
                    traffic.protocol(listener, resp_limits, move || Resp::new(shared.clone()));
            }
            _ => {
                let (node, api_limits) = (node.clone(), limits.clone());
                let api = move || CheckApi::new(node.clone(), &api_limits);
                traffic = traffic.front(listener, limits.clone(), api);
            }
        }
    }
    let (traffic, admin_server) = (traffic.start()?, admin_server.start()?);
    for (front, stats) in traffic.stats().iter().chain(admin_server.stats()) {
        node.metrics.register_stats(*front, stats.clone());
    }
    Ok((traffic, admin_server))
}

impl RunningServer {
    /// The addresses of the front ends, with actual ports.
    pub fn addresses(&self) -> &[(Front, SocketAddr)] {
        &self.addresses
    }

    /// The address of a front end.
    pub fn address(&self, front: Front) -> Option<SocketAddr> {
        self.addresses.iter().find(|one| one.0 == front).map(|one| one.1)
    }

    /// The state that the front ends share.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// A handle for reloads.
    pub fn reload(&self) -> ReloadHandle {
        self.control.reload().clone()
    }

    /// Starts sending the metrics of `/metrics` to a collector.
    ///
    /// # Errors
    ///
    /// When the system has no thread left.
    pub fn push_metrics(&mut self, options: &OtlpOptions) -> io::Result<()> {
        self.pusher = Some(MetricsPusher::start(self.node.clone(), self.start_us, options)?);
        Ok(())
    }

    /// Stops accepting, lets requests finish within the file's `drain`, and stops.
    pub fn drain(self) {
        let Self { traffic, admin, control, usage, pusher, node, .. } = self;
        let within = node.file().settings.drain;
        node.health.fail("draining", "the process is stopping");
        tracing::info!(within_s = within.as_secs_f64(), "draining");
        traffic.drain(within);
        // No request needs the leases any more, and other nodes can use the units.
        node.gate.store().release_leases(RELEASE_TIMEOUT);
        // No request is decided any more, so the last interval can be written.
        drop(usage);
        node.records.flush(FLUSH_TIMEOUT);
        if let Some(pusher) = pusher {
            pusher.stop(LAST_METRICS_TIMEOUT);
        }
        drop(control);
        admin.drain(Duration::ZERO);
        tracing::info!("stopped");
    }
}
