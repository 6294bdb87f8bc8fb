//! Headers on their way: from a client's request to the one that an upstream gets, and from an
//! upstream's answer to the client's.
//!
//! First everything goes that concerns the client's connection only, then the gateway writes what
//! it vouches for. So a client can neither have our headers removed by naming them in `Connection`
//! nor get others through under a name that a service takes for ours.

use super::validate::{ValidHead, is_spoofed_name};
use crate::net::{Answer, Headers, push_header, push_line, push_status};
use hyper::{
    HeaderMap, StatusCode, Version,
    header::{HeaderName, HeaderValue},
};
use std::{borrow::Cow, collections::HashMap, net::IpAddr};
use tollgate_policy::settings::OverrideHeaders;
use tollgate_tower::{HeaderClass, RateLimitHeaders};

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestOrigin<'a> {
    /// The connection's peer, and the same as text.
    pub(super) peer: IpAddr,
    pub(super) peer_text: &'a HeaderValue,
    /// Whether what it says about others counts.
    pub(super) is_trusted: bool,
    /// The client, as far as trusted proxies vouch for it.
    pub(super) client: IpAddr,
    pub(super) is_tls: bool,
    /// The host that the upstream is asked for.
    pub(super) host: &'a [u8],
    pub(super) override_headers: OverrideHeaders,
}

impl RequestOrigin<'_> {
    /// The client's address as text, which most often is there already.
    fn client_text(&self) -> Cow<'_, HeaderValue> {
        if self.client == self.peer {
            return Cow::Borrowed(self.peer_text);
        }
        let text = HeaderValue::try_from(self.client.to_string());
        text.map_or(Cow::Borrowed(self.peer_text), Cow::Owned)
    }
}

/// How the body of a request goes to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestFraming {
    /// There is none, and none is meant.
    NoBody,
    Length(u64),
    Chunked,
}

/// What concerns a request's connection to its upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct HopOptions<'a> {
    pub(super) body: RequestFraming,
    /// The protocols that the client wants to speak afterwards.
    pub(super) upgrade: Option<&'a [u8]>,
    /// Whether the client takes trailers.
    pub(super) accepts_trailers: bool,
    /// Whether the answer should not come compressed.
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
    if from.is_trusted {
        for (name, _) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            match HeaderClass::of(name) {
                HeaderClass::ForwardedProto => has_proto = true,
                HeaderClass::ForwardedHost => has_host = true,
                _ => {}
            }
        }
    }
    for (name, value) in headers.iter() {
        let class = HeaderClass::of(name);
        let goes = match class {
            HeaderClass::EndToEnd => {
                let is_coding = hop.reads_body && name.eq_ignore_ascii_case(b"accept-encoding");
                let is_count =
                    valid.max_forwards.is_some() && name.eq_ignore_ascii_case(b"max-forwards");
                !is_coding && !is_count
            }
            HeaderClass::Date | HeaderClass::Via | HeaderClass::Quota | HeaderClass::BeforeBody => {
                true
            }
            HeaderClass::Override(_) => from.override_headers == OverrideHeaders::Pass,
            HeaderClass::ForwardedProto => has_proto,
            HeaderClass::ForwardedHost => has_host,
            HeaderClass::Forwarded => from.is_trusted,
            // An empty one says nothing, and the gateway says it.
            _ => false,
        };
        if goes {
            push_header(name, value, out);
        }
    }
    write_origin(valid, headers, from, (has_proto, has_host), out);
    if let Some(left) = valid.max_forwards {
        let left = left.saturating_sub(1);
        push_line(b"max-forwards: ", left.to_string().as_bytes(), out);
    }
    push_line(b"via: ", via(valid.head.version).as_bytes(), out);
    write_hop(hop, out);
}

/// Writes who asks, in headers that nobody else has written.
fn write_origin(
    valid: &ValidHead<'_>,
    headers: &Headers<'_>,
    from: &RequestOrigin<'_>,
    (has_proto, has_host): (bool, bool),
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"x-forwarded-for: ");
    if from.is_trusted {
        for value in headers.all("x-forwarded-for").filter(|value| !value.is_empty()) {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(from.peer_text.as_bytes());
    out.extend_from_slice(b"\r\n");
    push_line(b"x-real-ip: ", from.client_text().as_bytes(), out);
    if !has_proto {
        out.extend_from_slice(match from.is_tls {
            true => b"x-forwarded-proto: https\r\n".as_slice(),
            false => b"x-forwarded-proto: http\r\n",
        });
    }
    if let (false, Some(host)) = (has_host, valid.host) {
        push_line(b"x-forwarded-host: ", host, out);
    }
}

/// Writes what concerns the connection to the upstream.
fn write_hop(hop: &HopOptions<'_>, out: &mut Vec<u8>) {
    let is_http2 = hop.version == Version::HTTP_2;
    match hop.body {
        RequestFraming::NoBody => {}
        RequestFraming::Length(length) => {
            push_line(b"content-length: ", length.to_string().as_bytes(), out);
        }
        RequestFraming::Chunked if is_http2 => {}
        RequestFraming::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
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

/// Who passed the request on, and how it came to them.
fn via(received: Version) -> &'static str {
    match received {
        Version::HTTP_09 | Version::HTTP_10 => "1.0 tollgate",
        Version::HTTP_11 => "1.1 tollgate",
        _ => "2 tollgate",
    }
}

/// Writes an upstream's answer into the client's, with the quota's headers among its own. `false`:
/// it agrees to a protocol that was not offered.
pub(super) fn write_response(
    status: StatusCode,
    mut headers: Headers<'_>,
    shown: &RateLimitHeaders,
    answer: &mut Answer,
) -> bool {
    hide_connection_listed(&mut headers, |_| false);
    answer.status = status;
    let mut quota = None;
    for (name, value) in headers.iter() {
        match HeaderClass::of(name) {
            class if class.is_hop_by_hop() => {}
            HeaderClass::Quota => {
                let name = HeaderName::from_bytes(name);
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
                    quota.get_or_insert_with(HeaderMap::new).append(name, value);
                }
            }
            HeaderClass::Date => {
                answer.is_dated = true;
                push_header(name, value, &mut answer.lines);
            }
            _ => push_header(name, value, &mut answer.lines),
        }
    }
    match quota {
        None => shown.write_lines(&mut answer.lines),
        Some(mut quota) => {
            shown.merge(&mut quota);
            for (name, value) in &quota {
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

/// The head of an interim answer for the client, without what ends at the gateway.
pub(super) fn write_interim(status: StatusCode, mut headers: Headers<'_>, out: &mut Vec<u8>) {
    hide_connection_listed(&mut headers, |_| false);
    push_status(status, &[], out);
    for (name, value) in headers.iter() {
        let class = HeaderClass::of(name);
        if !class.is_hop_by_hop() && class != HeaderClass::Quota {
            push_header(name, value, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Hides the headers that `Connection` lists, but those that concern more than a connection.
pub(super) fn hide_connection_listed(
    headers: &mut Headers<'_>,
    reads: impl Fn(&HeaderName) -> bool,
) {
    let is_usual = |value: &[u8]| {
        [&b"keep-alive"[..], b"close", b"upgrade", b"te"]
            .iter()
            .any(|known| value.eq_ignore_ascii_case(known))
    };
    if headers.all("connection").any(|value| !is_usual(value)) {
        hide_listed_names(headers, reads);
    }
}

/// The work is linear in the length of the list, whatever the number of headers.
#[cold]
fn hide_listed_names(headers: &mut Headers<'_>, reads: impl Fn(&HeaderName) -> bool) {
    let mut names: HashMap<Vec<u8>, bool> =
        headers.iter().map(|(name, _)| (name.to_ascii_lowercase(), false)).collect();
    let lists = headers.all("connection").flat_map(|list| list.split(|byte| *byte == b','));
    for token in lists {
        if let Some(is_listed) = names.get_mut(&token.trim_ascii().to_ascii_lowercase()) {
            *is_listed = true;
        }
    }
    headers.hide(|name| {
        names.get(&name.to_ascii_lowercase()).is_some_and(|is_listed| *is_listed)
            && HeaderClass::of(name).may_be_listed()
            && !HeaderName::from_bytes(name).is_ok_and(|name| reads(&name))
    });
}

/// Removes from the trailers of a request what has to be said before its body: what is read from
/// headers, what the gateway says itself, and what could be taken for either.
pub(super) fn remove_from_trailers(
    trailers: &mut HeaderMap,
    reads: impl Fn(&HeaderName) -> bool,
    is_alias: impl Fn(&HeaderName) -> bool,
) {
    remove_if(trailers, |name| {
        let bytes = name.as_str().as_bytes();
        !HeaderClass::of(bytes).may_trail()
            || is_modifier(name.as_str())
            || reads(name)
            || is_spoofed_name(bytes, &is_alias)
    });
}

/// Whether a header changes what a request asks for, and so cannot follow it (RFC 9110, section
/// 6.5.1).
fn is_modifier(name: &str) -> bool {
    matches!(name, "range" | "max-forwards" | "cache-control" | "pragma") || name.starts_with("if-")
}

/// Removes from the trailers of an answer what has to be said before its body. Clients are told
/// about their quota before the body, or not at all.
pub(super) fn remove_from_answer_trailers(trailers: &mut HeaderMap) {
    remove_if(trailers, |name| {
        let class = HeaderClass::of(name.as_str().as_bytes());
        let is_untimely = class == HeaderClass::Quota || class == HeaderClass::Host;
        is_untimely
            || class == HeaderClass::BeforeBody
            || class == HeaderClass::Forwarded
            || class.is_hop_by_hop()
    });
}

fn remove_if(headers: &mut HeaderMap, goes: impl Fn(&HeaderName) -> bool) {
    let gone: Vec<HeaderName> = headers.keys().filter(|name| goes(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

/// Whether a list of tokens, in several lines, has this one.
pub(super) fn has_token<'a>(mut lines: impl Iterator<Item = &'a [u8]>, token: &[u8]) -> bool {
    lines.any(|line| {
        line.split(|byte| *byte == b',').any(|item| {
            let item = item.split(|byte| *byte == b';').next().unwrap_or_default();
            item.trim_ascii().eq_ignore_ascii_case(token)
        })
    })
}

/// The protocols among those asked for that may be agreed on; `None` where there are none.
pub(super) fn allowed_protocols<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let wanted: Vec<&[u8]> = protocols(lines).filter(|protocol| !carries_http(protocol)).collect();
    (!wanted.is_empty()).then(|| wanted.join(&b", "[..]))
}

/// Whether requests come by any of these protocols, so that none of them was offered.
pub(super) fn any_carries_http<'a>(lines: impl Iterator<Item = &'a [u8]>) -> bool {
    protocols(lines).any(carries_http)
}

fn protocols<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    lines
        .flat_map(|line| line.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|protocol| !protocol.is_empty())
}

/// Whether requests of HTTP come by a protocol, whatever its version.
fn carries_http(protocol: &[u8]) -> bool {
    let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
    let known = [&b"h2c"[..], b"h2", b"h3", b"http", b"https", b"tls", b"ssl", b"spdy"];
    known.iter().any(|known| name.trim_ascii().eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests;
