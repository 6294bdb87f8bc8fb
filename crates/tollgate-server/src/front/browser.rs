//! Detects requests of web pages, which front ends for programs refuse.
//!
//! A browser lets any page send a request to this machine, in one of two ways.
//!
//! * A form or `fetch` sends a simple request to another origin: `GET` or `POST`, with one of three
//!   content types and no custom headers. So calls that change state need `Content-Type:
//!   application/json` ([`is_json`]) or `Authorization`.
//! * DNS rebinding: the page's own name now resolves to this machine. The request goes to the
//!   page's own origin and may have any header. Its `Host` is that name, and so is its
//!   `Origin`, which browsers send with every `POST`.

use hyper::header::HOST;
use hyper::http::request::Parts;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Allowed host names, in addition to hosts that no public page can have.
#[derive(Clone, Debug, Default)]
pub(super) struct AllowedHosts(Vec<Box<str>>);

impl AllowedHosts {
    /// Creates the list from names in lower case: `name`, `*.name` or `*`.
    pub(super) fn new(names: &[Box<str>]) -> Self {
        Self(names.to_vec())
    }

    /// The host of the request, if it is not allowed.
    pub(super) fn disallowed_host<'h>(&self, head: &'h Parts) -> Option<&'h str> {
        let named = match head.uri.authority() {
            Some(authority) => authority.as_str(),
            None => match head.headers.get(HOST) {
                // A browser always sends a `Host`.
                None => return None,
                Some(value) => value.to_str().unwrap_or("?"),
            },
        };
        let host = without_port(named);
        (!is_private(host) && !self.0.iter().any(|name| host_matches(name, host))).then_some(named)
    }
}

/// Whether this `Origin` is that of a public web page: a name that public DNS can have.
pub(super) fn is_public_origin(origin: &[u8]) -> bool {
    let origin = str::from_utf8(origin).unwrap_or_default();
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_none_or(|host| !is_private(without_port(host)))
}

/// Whether no public web page can have this host: an address, a name without a dot, or a name below
/// one reserved for private use.
fn is_private(host: &str) -> bool {
    const RESERVED: [&str; 5] =
        ["*.localhost", "*.internal", "*.svc", "*.cluster.local", "*.home.arpa"];
    let host = host.strip_suffix('.').unwrap_or(host);
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_name = |host: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !host.is_empty() && host.bytes().all(is_plain)
    };
    literal.is_some_and(|literal| literal.parse::<Ipv6Addr>().is_ok())
        || host.parse::<Ipv4Addr>().is_ok()
        || is_name(host)
        || RESERVED.iter().any(|name| host_matches(name, host))
}

/// Whether the host matches a pattern.
fn host_matches(pattern: &str, host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    match pattern.strip_prefix('*') {
        Some("") => true,
        Some(suffix) => host
            .len()
            .checked_sub(suffix.len())
            .filter(|start| *start > 0)
            .and_then(|start| host.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(suffix)),
        None => pattern.eq_ignore_ascii_case(host),
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Whether a `Content-Type` is JSON, in any case and with any parameters.
pub(super) fn is_json(content_type: Option<&[u8]>) -> bool {
    let Some(value) = content_type else { return false };
    // The spelling of most clients.
    if value == b"application/json" {
        return true;
    }
    let essence = value.split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

#[cfg(test)]
mod tests;
