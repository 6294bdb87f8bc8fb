//! `listen`, `trusted_proxies`, `client_address`, `admin.audit`, `admin.hosts`, `lint`, `envoy`.

use crate::compile::fields::{
    exactly_one, map_items, not_empty, number, number_u32, require_items, required,
};
use crate::diagnostic::{Position, Report, codes, quoted};
use crate::grammar::{self, Problem};
use crate::identity::address::{ClientAddressResolver, ClientAddressSource};
use crate::raw::{EnvoyCompat, File, Text};
use crate::settings::{Envoy, Front, ListenAddress, Listener};
use std::net::{IpAddr, Ipv4Addr};

const FRONTS: [Front; 5] = [Front::Gateway, Front::Http, Front::Grpc, Front::Resp, Front::Admin];

/// Without `listen`: http and admin, on this machine only.
pub(crate) fn listeners(file: &File, report: &mut Report) -> Vec<Listener> {
    let local = |port| ListenAddress::Ip((Ipv4Addr::LOCALHOST, port).into());
    let Some(listen) = &file.listen else {
        return vec![
            Listener { front: Front::Http, address: local(8081) },
            Listener { front: Front::Admin, address: local(8090) },
        ];
    };
    let mut listeners: Vec<Listener> = Vec::new();
    for (front, (name, field)) in FRONTS.into_iter().zip(listen.fields()) {
        debug_assert_eq!(front.name(), name);
        let Some(field) = field else { continue };
        let Some(address) = report.accept(field.at, grammar::listen(field)) else { continue };
        if let Some(other) = listeners.iter().find(|other| overlap(&other.address, &address)) {
            let message = format!(
                "`{name}` listens on {address}, which overlaps `{}` on {}",
                other.front.name(),
                other.address
            );
            let help = "give each listener its own port, or port 0 for a free one";
            report.error(codes::SAME_ADDRESS, field.at, message, help);
        }
        listeners.push(Listener { front, address });
    }
    listeners
}

/// Whether binding both addresses must fail: they have the same port on the same address, or one is
/// a wildcard of the other's family. Host names are resolved only at start, so they never overlap
/// here.
fn overlap(a: &ListenAddress, b: &ListenAddress) -> bool {
    let (ListenAddress::Ip(a), ListenAddress::Ip(b)) = (a, b) else {
        return a.port() != 0 && a == b;
    };
    let all = |ip: IpAddr| ip.is_unspecified();
    let same_ip = a.ip() == b.ip() || (a.is_ipv4() == b.is_ipv4() && (all(a.ip()) || all(b.ip())));
    a.port() != 0 && a.port() == b.port() && same_ip
}

/// Compiles `trusted_proxies` and `client_address`. The defaults are X-Forwarded-For, and /64 for
/// IPv6.
pub(crate) fn client_address(file: &File, report: &mut Report) -> ClientAddressResolver {
    let default = || ClientAddressSource::Header("x-forwarded-for".into());
    let mut client = ClientAddressResolver::default();
    client.source = default();
    if let Some(proxies) = &file.trusted_proxies {
        client.set_trusted(map_items(proxies, report, |text| grammar::network(text)));
    }
    let Some(field) = &file.client_address else { return client };
    let bits = number(&field.ipv6_prefix, 64, (1, 128), report);
    client.ipv6_prefix = u8::try_from(bits).unwrap_or(64);
    client.source = match (&field.header, &field.hops) {
        (Some(_), Some(hops)) => {
            exactly_one(&[("header", true), ("hops", true)], hops.name_at, report);
            default()
        }
        (Some(header), None) => report
            .accept(header.at, grammar::header_name(header))
            .map_or_else(default, ClientAddressSource::Header),
        (None, Some(_)) => ClientAddressSource::Hops(number_u32(&field.hops, 1, (1, 64), report)),
        (None, None) => default(),
    };
    client
}

pub(crate) fn admin_audit(file: &File, report: &mut Report) -> Option<Box<str>> {
    let audit = file.admin.as_ref()?.audit.as_ref()?;
    required(&audit.file, "file", (audit.at, &audit.unreadable), report)
}

pub(crate) fn admin_hosts(file: &File, report: &mut Report) -> Vec<Box<str>> {
    let Some(hosts) = file.admin.as_ref().and_then(|admin| admin.hosts.as_ref()) else {
        return Vec::new();
    };
    require_items(&hosts.0, "hosts", hosts.at, report);
    map_items(&hosts.0, report, |text: &Text| grammar::host(text))
}

/// Checks only the form of each code. An unknown code may belong to a lint of a newer version.
pub(crate) fn lint_allow(file: &File, report: &mut Report) -> Vec<Box<str>> {
    let Some(allow) = file.lint.as_ref().and_then(|lint| lint.allow.as_ref()) else {
        return Vec::new();
    };
    map_items(&allow.0, report, |text: &Text| {
        let number = text.strip_prefix("TG").filter(|digits| digits.len() == 3);
        match number.and_then(|digits| digits.parse::<u32>().ok()) {
            Some(101..) => Ok((**text).into()),
            _ => {
                let message = format!("{} is not the code of a lint", quoted(text));
                let help = "write codes of warnings, such as `TG101`; errors cannot be allowed";
                Err(Problem::new(codes::NOT_A_LINT, message, help))
            }
        }
    })
}

pub(crate) fn envoy(file: &File, report: &mut Report) -> Envoy {
    let mut envoy = Envoy {
        configs: Vec::new(),
        strict: true,
        rate_limited_status: STATUS_USUAL,
        dynamic_metadata: true,
    };
    let Some(field) = &file.envoy else { return envoy };
    let is_alone = field.rate_limited_status.is_none() && field.dynamic_metadata.is_none();
    let configs = field.configs.as_ref().map(|configs| configs.0.as_slice()).unwrap_or_default();
    if field.configs.is_some() || is_alone {
        let at: Position = field.configs.as_ref().map_or(field.at, |configs| configs.at);
        require_items(configs, "configs", at, report);
    }
    envoy.configs = map_items(configs, report, |text| not_empty(text));
    envoy.strict = match field.compat.as_ref().map(|word| word.value) {
        Some(compat) => compat == EnvoyCompat::Strict,
        None => envoy.configs.is_empty(),
    };
    let status = number(&field.rate_limited_status, STATUS_USUAL.into(), STATUSES, report);
    envoy.rate_limited_status = u16::try_from(status).unwrap_or(STATUS_USUAL);
    envoy.dynamic_metadata = field.dynamic_metadata.as_ref().is_none_or(|field| field.value);
    envoy
}

/// Envoy's default status for refusals, if `rate_limited_status` is not set in its filter.
const STATUS_USUAL: u16 = 429;
/// Envoy turns a status below 400 into 429.
const STATUSES: (u64, u64) = (400, 599);
