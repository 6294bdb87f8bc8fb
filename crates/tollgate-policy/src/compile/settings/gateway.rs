//! `listen.gateway` and `listen.grpc` in their long forms, and `upstream`.

use super::store::tls;
use crate::compile::fields::{
    duration_us, map_items, missing, not_empty, number_u32, require_items, required, text, word,
};
use crate::diagnostic::{Report, codes};
use crate::grammar::{self, Problem};
use crate::raw::{
    self, At, Balance, Field, File, GatewayListen, GrpcListen, HostPolicy, HttpListen, OneOrMany,
    ProxyProtocol, Text, UpstreamForm, Upstreams,
};
use crate::settings::{Front, Gateway, HealthCheck, Http, Listener, ServerTls, Upstream};
use std::time::Duration;

const SECOND_US: u64 = 1_000_000;
const HOUR_US: u64 = 3600 * SECOND_US;

pub(crate) fn upstream(file: &File, listeners: &[Listener], report: &mut Report) -> Vec<Upstream> {
    let of = |servers: &OneOrMany<Text>, name, at, report: &mut Report| {
        require_items(&servers.0, name, at, report);
        map_items(&servers.0, report, |text| grammar::upstream(text))
    };
    match file.upstream.as_ref().map(|field| (field, &field.value)) {
        Some((field, Upstreams::Servers(servers))) => {
            return of(servers, "upstream", field.at, report);
        }
        Some((field, Upstreams::Form(form))) => match &form.servers {
            Some(servers) => return of(servers, "servers", servers.at, report),
            None => missing("servers", (field.at, &form.unreadable), report),
        },
        None if file.unreadable.contains(&"upstream") => {}
        None => {
            let gateway = file.listen.as_ref().and_then(|listen| listen.gateway.as_ref());
            if let (true, Some(gateway)) =
                (listeners.iter().any(|listener| listener.front == Front::Gateway), gateway)
            {
                let message = "the gateway has no `upstream`";
                let help = "add `upstream: http://127.0.0.1:3000`, or remove `gateway`";
                report.error(codes::NO_UPSTREAM, gateway.name_at, message, help);
            }
        }
    }
    Vec::new()
}

pub(crate) fn gateway(file: &File, report: &mut Report) -> Gateway {
    let listen = file.listen.as_ref().and_then(|listen| listen.gateway.as_ref());
    let (mut certificate, mut client) = (None, None);
    let (mut proxy_protocol, mut status) = (false, false);
    let (mut ambiguous, mut overrides) = Default::default();
    if let Some(At { value: GatewayListen::Form(form), at, .. }) = listen {
        if form.address.is_none() {
            missing("address", (*at, &form.unreadable), report);
        }
        certificate = form.tls.as_ref().and_then(|tls| server_tls(tls, report));
        proxy_protocol = word(&form.proxy_protocol) == ProxyProtocol::Required;
        status = form.status.as_ref().is_some_and(|status| status.value);
        ambiguous = word(&form.ambiguous_paths);
        overrides = word(&form.override_headers);
        client = form.timeouts.as_ref().map(|timeouts| &timeouts.value);
    }
    let none = UpstreamForm::default();
    let form = match file.upstream.as_ref().map(|field| &field.value) {
        Some(Upstreams::Form(form)) => form,
        _ => &none,
    };
    let times = form.timeouts.as_ref().map(|timeouts| &timeouts.value);
    let time = |field: Option<&Field<_>>, default_s: u64, report: &mut Report| {
        let field = field.unwrap_or(&None);
        let range = (1000, HOUR_US);
        Duration::from_micros(duration_us(field, default_s * SECOND_US, range, report))
    };
    Gateway {
        tls: certificate,
        proxy_protocol,
        status,
        ambiguous_paths: ambiguous,
        override_headers: overrides,
        round_robin: word(&form.balance) == Balance::RoundRobin,
        health: health(form, report),
        own_host: word(&form.host) == HostPolicy::Upstream,
        connect: time(times.map(|times| &times.connect), 5, report),
        response: time(times.map(|times| &times.response), 60, report),
        idle: time(times.map(|times| &times.idle), 60, report),
        upstream_tls: form.tls.as_ref().map(|field| tls(field, report)).unwrap_or_default(),
        idle_connections: number_u32(&form.idle_connections, 128, (0, 65_536), report),
        protocol: word(&form.protocol),
        client_head: time(client.map(|times| &times.head), 10, report),
        client_body: time(client.map(|times| &times.body), 10, report),
        client_idle: time(client.map(|times| &times.idle), 60, report),
    }
}

/// `listen.grpc.tls`.
pub(crate) fn grpc_tls(file: &File, report: &mut Report) -> Option<ServerTls> {
    let listen = file.listen.as_ref().and_then(|listen| listen.grpc.as_ref());
    let Some(At { value: GrpcListen::Form(form), at, .. }) = listen else { return None };
    if form.address.is_none() {
        missing("address", (*at, &form.unreadable), report);
    }
    form.tls.as_ref().and_then(|tls| server_tls(tls, report))
}

/// The certificate of a listener.
fn server_tls(tls: &At<raw::ServerTls>, report: &mut Report) -> Option<ServerTls> {
    let cert = required(&tls.cert, "cert", (tls.at, &tls.unreadable), report);
    let key = required(&tls.key, "key", (tls.at, &tls.unreadable), report);
    let client_ca = text(&tls.client_ca, report);
    let mut client_names = Vec::new();
    if let Some(names) = &tls.client_names {
        require_items(&names.0, "client_names", names.at, report);
        client_names = map_items(&names.0, report, |name| not_empty(name));
        if tls.client_ca.is_none() && !tls.unreadable.contains(&"client_ca") {
            let message = "`client_names` needs `client_ca`";
            let help = "name the authorities of client certificates, or remove `client_names`";
            report.error(codes::TLS_MISMATCH, names.name_at, message, help);
        }
    }
    Some(ServerTls { cert: cert?, key: key?, client_ca, client_names })
}

/// `listen.http` in its long form.
pub(crate) fn http(file: &File, report: &mut Report) -> Http {
    let listen = file.listen.as_ref().and_then(|listen| listen.http.as_ref());
    let Some(At { value: HttpListen::Form(form), at, .. }) = listen else {
        return Http::default();
    };
    if form.address.is_none() {
        missing("address", (*at, &form.unreadable), report);
    }
    Http {
        ambiguous_paths: word(&form.ambiguous_paths),
        override_headers: word(&form.override_headers),
    }
}

fn health(form: &UpstreamForm, report: &mut Report) -> Option<HealthCheck> {
    let health = form.health.as_ref()?;
    let every = |field: &Field<_>, default_us, report: &mut Report| {
        Duration::from_micros(duration_us(field, default_us, (10_000, HOUR_US), report))
    };
    let path = match &health.path {
        None => {
            missing("path", (health.at, &health.unreadable), report);
            None
        }
        Some(path) => report.accept(path.at, health_path(path)).and(text(&health.path, report)),
    };
    Some(HealthCheck {
        path: path.unwrap_or_else(|| "/".into()),
        interval: every(&health.interval, 5 * SECOND_US, report),
        timeout: every(&health.timeout, 2 * SECOND_US, report),
        unhealthy_after: number_u32(&health.unhealthy_after, 2, (1, 1000), report),
        healthy_after: number_u32(&health.healthy_after, 2, (1, 1000), report),
    })
}

fn health_path(path: &str) -> Result<(), Problem> {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    if path.starts_with('/') && path.bytes().all(plain) {
        return Ok(());
    }
    let help = "write it as `/healthz`, with %-escapes where needed";
    Err(Problem::new(codes::BAD_URL, "the path of the health check is not one", help))
}
