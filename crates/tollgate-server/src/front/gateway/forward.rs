//! Headers in transit: from a client's request to its upstream, and from the response back.
//!
//! First, all hop-by-hop headers of the client are removed. Then the gateway writes its own
//! headers. So a client cannot remove our headers by naming them in `Connection`, nor send others
//! under a name that a service confuses with ours.

use super::GatewayState;
use super::validate::{ValidHead, is_spoofed_name};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode, Version};
use std::{collections::HashMap, net::IpAddr};
use tollgate_net::{
    ClientConnection, Framing, Headers, HttpResponse, push_header, push_line, push_status,
};
use tollgate_policy::address::unmap;
use tollgate_policy::settings::OverrideHeaders;
use tollgate_tower::{HeaderClass as Class, RateLimitHeaders};

/// The origin of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestOrigin<'a> {
    /// The [`peer_lines`] of the connection.
    pub(super) peer_lines: &'a [u8],
    /// The client, as far as trusted proxies vouch for it; `None` if the peer is none of them.
    pub(super) client: Option<IpAddr>,
    pub(super) is_tls: bool,
    /// The value of `Host` for the upstream.
    pub(super) host: &'a [u8],
    pub(super) override_headers: OverrideHeaders,
}

/// Options of the connection to the upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct HopOptions<'a> {
    pub(super) framing: Framing,
    /// The protocols that the client asks to switch to.
    pub(super) upgrade: Option<&'a [u8]>,
    pub(super) accepts_trailers: bool,
    /// Whether the gateway reads the response, which then must not be compressed.
    pub(super) reads_body: bool,
    pub(super) version: Version,
}

/// Writes the header lines of a request for an upstream.
pub(super) fn write_request(
    valid: &ValidHead<'_>,
    headers: &Headers<'_>,
    from: &RequestOrigin<'_>,
    hop: &HopOptions<'_>,
    out: &mut Vec<u8>,
) {
    if hop.version != Version::HTTP_2 {
        push_line(b"host: ", from.host, out);
    }
    let (mut has_proto, mut has_host) = (false, false);
    if from.client.is_some() {
        for (name, _) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            match Class::of(name) {
                Class::ForwardedProto => has_proto = true,
                Class::ForwardedHost => has_host = true,
                _ => {}
            }
        }
    }
    for (name, value) in headers.iter() {
        let goes = match Class::of(name) {
            Class::EndToEnd => {
                let is_coding = hop.reads_body && name.eq_ignore_ascii_case(b"accept-encoding");
                let is_count =
                    valid.max_forwards.is_some() && name.eq_ignore_ascii_case(b"max-forwards");
                !is_coding && !is_count
            }
            Class::Date | Class::Via | Class::Quota | Class::BeforeBody => true,
            Class::Override(_) => from.override_headers == OverrideHeaders::Pass,
            Class::ForwardedProto => has_proto,
            Class::ForwardedHost => has_host,
            Class::Forwarded => from.client.is_some(),
            _ => false,
        };
        if goes {
            push_header(name, value, out);
        }
    }
    write_origin(valid, headers, from, (has_proto, has_host), out);
    if let Some(left) = valid.max_forwards {
        push_line(b"max-forwards: ", left.saturating_sub(1).to_string().as_bytes(), out);
    }
    out.extend_from_slice(via_line(valid.head.version));
    write_hop(hop, out);
}

/// The start of [`peer_lines`], before the address.
const FORWARDED_FOR: &[u8] = b"x-forwarded-for: ";

/// The origin of requests from a peer that is no trusted proxy.
pub(super) fn peer_lines(caller: &ClientConnection) -> Box<[u8]> {
    let peer = unmap(caller.peer.ip()).to_string();
    let mut lines = [FORWARDED_FOR, peer.as_bytes(), b"\r\n"].concat();
    push_line(b"x-real-ip: ", peer.as_bytes(), &mut lines);
    lines.extend_from_slice(proto_line(caller.is_tls));
    lines.into()
}

fn proto_line(is_tls: bool) -> &'static [u8] {
    if is_tls { b"x-forwarded-proto: https\r\n" } else { b"x-forwarded-proto: http\r\n" }
}

/// Writes the origin of the request. Only headers of a trusted proxy are kept beside ours.
fn write_origin(
    valid: &ValidHead<'_>,
    headers: &Headers<'_>,
    from: &RequestOrigin<'_>,
    (has_proto, has_host): (bool, bool),
    out: &mut Vec<u8>,
) {
    if let Some(client) = from.client {
        out.extend_from_slice(FORWARDED_FOR);
        for value in headers.all("x-forwarded-for").filter(|value| !value.is_empty()) {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
        let own = from.peer_lines.get(FORWARDED_FOR.len()..).unwrap_or_default();
        out.extend(own.iter().take_while(|byte| **byte != b'\r'));
        out.extend_from_slice(b"\r\n");
        push_line(b"x-real-ip: ", client.to_string().as_bytes(), out);
        if !has_proto {
            out.extend_from_slice(proto_line(from.is_tls));
        }
    } else {
        out.extend_from_slice(from.peer_lines);
    }
    if let (false, Some(host)) = (has_host, valid.host) {
        push_line(b"x-forwarded-host: ", host, out);
    }
}

fn write_hop(hop: &HopOptions<'_>, out: &mut Vec<u8>) {
    let is_http2 = hop.version == Version::HTTP_2;
    match hop.framing {
        Framing::Length(length) => {
            push_line(b"content-length: ", length.to_string().as_bytes(), out);
        }
        Framing::Chunked if !is_http2 => push_line(b"transfer-encoding: ", b"chunked", out),
        _ => {}
    }
    if let Some(upgrade) = hop.upgrade {
        push_line(b"connection: upgrade\r\nupgrade: ", upgrade, out);
    } else if hop.accepts_trailers {
        if !is_http2 {
            out.extend_from_slice(b"connection: te\r\n");
        }
        out.extend_from_slice(b"te: trailers\r\n");
    }
}

fn via_line(received: Version) -> &'static [u8] {
    match received {
        Version::HTTP_09 | Version::HTTP_10 => b"via: 1.0 tollgate\r\n",
        Version::HTTP_11 => b"via: 1.1 tollgate\r\n",
        _ => b"via: 2 tollgate\r\n",
    }
}

/// Writes the headers of a response, without [those](hide_connection_listed) that `Connection`
/// lists, and of the quota. `false`: the upgrade was not offered.
pub(super) fn write_response(
    status: StatusCode,
    headers: Headers<'_>,
    quota: &RateLimitHeaders,
    answer: &mut HttpResponse,
) -> bool {
    answer.status = status;
    let mut upstream_quota = None;
    for (name, value) in headers.iter() {
        match Class::of(name) {
            class if class.is_hop_by_hop() => {}
            Class::Quota => {
                let name = HeaderName::from_bytes(name);
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
                    upstream_quota.get_or_insert_with(HeaderMap::new).append(name, value);
                }
            }
            Class::Date => {
                answer.is_dated = true;
                push_header(name, value, &mut answer.lines);
            }
            _ => push_header(name, value, &mut answer.lines),
        }
    }
    match upstream_quota {
        None => quota.write_lines(&mut answer.lines),
        Some(mut merged) => {
            quota.merge(&mut merged);
            for (name, value) in &merged {
                push_header(name.as_ref(), value.as_bytes(), &mut answer.lines);
            }
        }
    }
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let offered = || headers.all("upgrade");
        if any_carries_http(offered()) {
            return false;
        }
        answer.lines.extend_from_slice(b"connection: upgrade\r\n");
        offered().for_each(|value| push_header(b"upgrade", value, &mut answer.lines));
    }
    true
}

/// Writes the head of an interim answer.
pub(super) fn write_interim(status: StatusCode, mut headers: Headers<'_>, out: &mut Vec<u8>) {
    hide_connection_listed(&mut headers, |_| false);
    push_status(status, &[], out);
    for (name, value) in headers.iter() {
        let class = Class::of(name);
        if !class.is_hop_by_hop() && class != Class::Quota {
            push_header(name, value, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Hides the headers that `Connection` lists and that a hop may remove. Decisions do not read them.
pub(super) fn hide_connection_listed(
    headers: &mut Headers<'_>,
    reads: impl Fn(&HeaderName) -> bool,
) {
    let usual = [&b"keep-alive"[..], b"close", b"upgrade", b"te"];
    let is_usual = |value: &[u8]| usual.iter().any(|known| value.eq_ignore_ascii_case(known));
    if headers.all("connection").any(|value| !is_usual(value)) {
        hide_listed_names(headers, reads);
    }
}

/// Linear in the length of the list, independent of the number of headers.
#[cold]
fn hide_listed_names(headers: &mut Headers<'_>, reads: impl Fn(&HeaderName) -> bool) {
    let mut names: HashMap<Vec<u8>, bool> =
        headers.iter().map(|(name, _)| (name.to_ascii_lowercase(), false)).collect();
    for token in tokens(headers.all("connection")) {
        if let Some(is_listed) = names.get_mut(&token.to_ascii_lowercase()) {
            *is_listed = true;
        }
    }
    headers.hide(|name| {
        names.get(&name.to_ascii_lowercase()).is_some_and(|is_listed| *is_listed)
            && Class::of(name).may_be_listed()
            && !HeaderName::from_bytes(name).is_ok_and(|name| reads(&name))
    });
}

/// Removes forbidden headers from a request's trailers: those that decisions read, those that the
/// gateway writes, and those that a service could confuse with either.
pub(super) fn remove_from_trailers(trailers: &mut HeaderMap, shared: &GatewayState) {
    remove_if(trailers, |name| {
        let bytes = name.as_str().as_bytes();
        !Class::of(bytes).may_trail()
            || is_modifier(name.as_str())
            || shared.reads(name)
            || is_spoofed_name(bytes, &|name: &HeaderName| shared.is_alias(name))
    });
}

/// Whether a header changes the meaning of a request, and so must not be a trailer (RFC 9110,
/// 6.5.1).
fn is_modifier(name: &str) -> bool {
    matches!(name, "range" | "max-forwards" | "cache-control" | "pragma") || name.starts_with("if-")
}

/// Removes forbidden headers from a response's trailers.
pub(super) fn remove_from_answer_trailers(trailers: &mut HeaderMap) {
    use Class::{BeforeBody, Forwarded, Host, Quota};
    remove_if(trailers, |name| {
        let class = Class::of(name.as_str().as_bytes());
        class.is_hop_by_hop() || [Quota, Host, BeforeBody, Forwarded].contains(&class)
    });
}

fn remove_if(headers: &mut HeaderMap, goes: impl Fn(&HeaderName) -> bool) {
    let gone: Vec<HeaderName> = headers.keys().filter(|name| goes(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

/// Whether comma-separated lists have this token, with or without parameters.
pub(super) fn has_token<'a>(lines: impl Iterator<Item = &'a [u8]>, token: &[u8]) -> bool {
    tokens(lines).any(|item| {
        let item = item.split(|byte| *byte == b';').next().unwrap_or_default();
        item.trim_ascii().eq_ignore_ascii_case(token)
    })
}

/// The items of comma-separated lists.
fn tokens<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    let items = lines.flat_map(|line| line.split(|byte| *byte == b','));
    items.map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}

/// The protocols of `Upgrade` that carry no HTTP; `None` if there are none. After an upgrade the
/// gateway sees only bytes: requests in another version or inside TLS would not be decided.
pub(super) fn allowed_protocols<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let allowed: Vec<&[u8]> = tokens(lines).filter(|protocol| !carries_http(protocol)).collect();
    (!allowed.is_empty()).then(|| allowed.join(&b", "[..]))
}

/// Whether any of these protocols carries HTTP; the gateway does not offer those.
pub(super) fn any_carries_http<'a>(lines: impl Iterator<Item = &'a [u8]>) -> bool {
    tokens(lines).any(carries_http)
}

fn carries_http(protocol: &[u8]) -> bool {
    let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
    let known = [&b"h2c"[..], b"h2", b"h3", b"http", b"https", b"tls", b"ssl", b"spdy"];
    known.iter().any(|known| name.trim_ascii().eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests;
