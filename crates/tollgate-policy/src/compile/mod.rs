//! Raw file -> checked values. Every rule of the file lives here, in the module named after what it
//! is about.

mod cost;
mod failure;
mod fields;
mod front;
mod gateway;
mod headers;
mod identity;
mod lease;
mod limits;
mod matching;
mod numbers;
mod on_response;
mod penalty;
mod refusal;
mod store;

use crate::diagnostic::{Diagnostic, Report};
use crate::limit::Limit;
use crate::match_spec::MatchSpec;
use crate::raw::File;
use crate::settings::Settings;
use crate::yaml;

/// A file without errors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// Everything but the limits.
    pub settings: Settings,
    /// The limits in file order, an entry with `keys` as several, each with the requests it applies
    /// to.
    pub limits: Vec<(Limit, MatchSpec)>,
    /// For each of `limits`, which entry of the file's `limits` it comes from.
    pub entries: Vec<usize>,
    /// What was read, with the place of everything: lints point at it.
    pub file: File,
}

/// Reads a whole file: its meaning, or all errors in the order of the file.
pub fn compile(bytes: &[u8]) -> Result<Compiled, Vec<Diagnostic>> {
    let node = yaml::parse(bytes).map_err(|error| vec![error])?;
    let mut report = Report::default();
    let file = File::read(&node, &mut report);
    let settings = settings(&file, &mut report);
    let (limits, entries) = limits::limits(&file, &settings, &mut report);
    if report.is_empty() {
        Ok(Compiled { settings, limits, entries, file })
    } else {
        Err(report.finish())
    }
}

fn settings(file: &File, report: &mut Report) -> Settings {
    let listeners = front::listeners(file, report);
    let upstream = gateway::upstream(file, &listeners, report);
    let store = store::store(file, report);
    let jwt = identity::jwt(file, report);
    let client_address = front::client_address(file, report);
    let tiers = identity::tiers(file, &store, client_address.ipv6_prefix, report);
    let drain_us = fields::duration_us(&file.drain, 10_000_000, (0, 86_400_000_000), report);
    Settings {
        listeners,
        upstream,
        gateway: gateway::gateway(file, report),
        grpc_tls: gateway::grpc_tls(file, report),
        http: gateway::http(file, report),
        on_store_failure: failure::on_store_failure(&file.on_store_failure, report)
            .unwrap_or_default(),
        trusted_proxies: front::trusted_proxies(file, report),
        client_address,
        headers: headers::headers(file, report),
        identity: identity::identity(file, report),
        jwt,
        tiers,
        refusal: refusal::refusal(file, report),
        resp_password: file.resp.as_ref().and_then(|resp| fields::secret(&resp.password, report)),
        admin_token: file.admin.as_ref().and_then(|admin| fields::secret(&admin.token, report)),
        admin_audit: front::admin_audit(file, report),
        admin_hosts: front::admin_hosts(file, report),
        lint_allow: front::lint_allow(file, report),
        envoy: front::envoy(file, report),
        drain: std::time::Duration::from_micros(drain_us),
        store,
    }
}
