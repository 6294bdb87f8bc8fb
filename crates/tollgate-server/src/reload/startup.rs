//! Settings that a reload cannot change.

use std::time::Duration;
use tollgate_policy::settings::{Listener, ServerTls, Settings, Store, Usage};

/// Settings that take effect only at the start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StartupSettings {
    listeners: Vec<Listener>,
    /// The certificates of the gateway and of `listen.grpc`.
    certificates: [Option<ServerTls>; 2],
    /// The gateway's PROXY protocol and time limits.
    proxy_protocol: bool,
    client_timeouts: [Duration; 3],
    store: Store,
    usage: Option<Usage>,
}

impl StartupSettings {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            listeners: settings.listeners.clone(),
            certificates: [settings.gateway.tls.clone(), settings.grpc_tls.clone()],
            proxy_protocol: settings.gateway.proxy_protocol,
            client_timeouts: [
                settings.gateway.client_head,
                settings.gateway.client_body,
                settings.gateway.client_idle,
            ],
            store: settings.store.clone(),
            usage: settings.usage.clone(),
        }
    }

    /// The fields that differ.
    pub(super) fn changed_fields(&self, other: &Self) -> Vec<&'static str> {
        let listens = |bound: &Self| {
            (bound.certificates.clone(), bound.proxy_protocol, bound.client_timeouts)
        };
        let same = self.listeners == other.listeners && listens(self) == listens(other);
        let listen = (!same).then_some("listen");
        let store = (self.store != other.store).then_some("store");
        let usage = (self.usage != other.usage).then_some("usage");
        listen.into_iter().chain(store).chain(usage).collect()
    }
}
