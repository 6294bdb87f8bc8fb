//! Settings of the raw file, checked: listeners, gateway, store, identity, responses.

mod gateway;
mod identity;
mod listeners;
mod records;
mod responses;
pub(crate) mod store;

use super::fields;
use crate::diagnostic::Report;
use crate::raw::File;
use crate::settings::Settings;
use std::time::Duration;

pub(crate) fn settings(file: &File, report: &mut Report) -> Settings {
    let listeners = listeners::listeners(file, report);
    let upstream = gateway::upstream(file, &listeners, report);
    let store = store::store(file, report);
    let jwt = identity::jwt(file, report);
    let client_address = listeners::client_address(file, report);
    let tiers = identity::tiers(file, &store, client_address.ipv6_prefix, report);
    records::own_files(file, report);
    let drain_us = fields::duration_us(&file.drain, 10_000_000, (0, 86_400_000_000), report);
    Settings {
        listeners,
        upstream,
        gateway: gateway::gateway(file, report),
        grpc_tls: gateway::grpc_tls(file, report),
        http: gateway::http(file, report),
        on_store_failure: super::limit::on_store_failure(&file.on_store_failure, report)
            .unwrap_or_default(),
        client_address,
        headers: responses::headers(file, report),
        identity: identity::identity(file, report),
        jwt,
        tiers,
        refusal: responses::refusal(file, report),
        resp_password: file.resp.as_ref().and_then(|resp| fields::secret(&resp.password, report)),
        admin_token: file.admin.as_ref().and_then(|admin| fields::token(&admin.token, report)),
        admin_audit: listeners::admin_audit(file, report),
        admin_hosts: listeners::admin_hosts(file, report),
        logs: records::logs(file, report),
        usage: records::usage(file, report),
        keys_secret: fields::secret(&file.keys_secret, report),
        lint_allow: listeners::lint_allow(file, report),
        envoy: listeners::envoy(file, report),
        drain: Duration::from_micros(drain_us),
        store,
    }
}
