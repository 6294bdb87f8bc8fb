//! A request's head has one meaning, or the request is refused.

use hyper::http::uri::{Authority, PathAndQuery};
use hyper::{StatusCode, Version, header::HeaderName};
use tollgate_net::RequestHead;
use tollgate_policy::address::{fold_name_byte, is_odd_name};
use tollgate_tower::{HeaderClass, is_header};

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidRequest {
    /// No host, several, or a malformed one.
    Host,
    Connect,
    Target,
    Length,
    Authorization,
    Trace,
}

impl InvalidRequest {
    pub(super) fn problem(self) -> (StatusCode, &'static str) {
        let detail = match self {
            Self::Host => "the request does not name one host",
            Self::Connect => {
                return (StatusCode::METHOD_NOT_ALLOWED, "tunnels are not offered here");
            }
            Self::Target => "the request's target is not a path",
            Self::Length => "the request has two lengths",
            Self::Authorization => "the request has two headers `Authorization`",
            Self::Trace => return (StatusCode::NOT_IMPLEMENTED, "requests are not shown here"),
        };
        (StatusCode::BAD_REQUEST, detail)
    }
}

/// A head with one meaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValidHead<'a> {
    /// The head, without headers that a service could confuse with others.
    pub(super) head: RequestHead<'a>,
    /// The host; `None` only for HTTP/1.0.
    pub(super) host: Option<&'a [u8]>,
    /// The number of proxies that the request may still pass, including this one.
    pub(super) max_forwards: Option<u64>,
    /// Whether the head has `Connection` or `TE`.
    pub(super) has_connection_headers: bool,
    /// Whether the head has `Content-Length`.
    pub(super) has_length: bool,
}

/// Checks a head. `is_alias`: whether a service could confuse a name with one that decisions read.
pub(super) fn validate<'a>(
    mut head: RequestHead<'a>,
    is_alias: impl Fn(&HeaderName) -> bool,
) -> Result<ValidHead<'a>, InvalidRequest> {
    if head.method == "CONNECT" {
        return Err(InvalidRequest::Connect);
    }
    if !is_path(&head) {
        return Err(InvalidRequest::Target);
    }
    let (mut lengths, mut authorizations, mut is_odd) = (0, 0, false);
    let (mut named, mut has_connection_headers) = (None, false);
    for (name, value) in head.headers.iter() {
        let is = |known: &str| is_header(name, known);
        match name.len() {
            2 if is("te") => has_connection_headers = true,
            4 if is("host") => named = Some(value),
            10 if is("connection") => has_connection_headers = true,
            13 if is("authorization") => authorizations += 1,
            14 if is("content-length") => lengths += 1,
            _ => is_odd |= is_odd_name(name),
        }
    }
    // A service might read the second of two.
    if authorizations > 1 {
        return Err(InvalidRequest::Authorization);
    }
    if lengths > 1 {
        return Err(InvalidRequest::Length);
    }
    if head.known.hosts > 1 {
        return Err(InvalidRequest::Host);
    }
    let host = host(&head, named)?;
    if is_odd {
        head.headers.hide(|name| is_spoofed_name(name, &is_alias));
    }
    let max_forwards = max_forwards(&head)?;
    Ok(ValidHead { head, host, max_forwards, has_connection_headers, has_length: lengths > 0 })
}

/// Whether the target is a path, a URL with a path, or the `*` of `OPTIONS`. A service could read
/// any other target as a path that no limit saw.
#[inline(always)]
fn is_path(head: &RequestHead<'_>) -> bool {
    if is_plain_target(head.target) {
        return true;
    }
    if head.target == "*" {
        return head.method == "OPTIONS";
    }
    if !head.target.starts_with('/') {
        let Some((scheme, _)) = head.target.split_once("://") else { return false };
        let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        if !is_http || head.version >= Version::HTTP_2 {
            return false;
        }
    }
    PathAndQuery::try_from(head.path_and_query()).is_ok()
}

/// Whether a target is a path of characters that all servers read alike.
fn is_plain_target(target: &str) -> bool {
    const PLAIN: [bool; 256] = byte_set(b"/-._~%?=&:@!$'()*+,;");
    target.starts_with('/') && target.bytes().all(|byte| PLAIN[usize::from(byte)])
}

/// Letters, digits and `others`.
const fn byte_set(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut other = 0;
    while other < others.len() {
        table[others[other] as usize] = true;
        other += 1;
    }
    table
}

#[inline(always)]
fn host<'a>(
    head: &RequestHead<'a>,
    named: Option<&'a [u8]>,
) -> Result<Option<&'a [u8]>, InvalidRequest> {
    match (head.target_authority(), named) {
        // RFC 9112, section 3.2: every request of HTTP/1.1 has `Host`.
        (Some(_), None) if head.version == Version::HTTP_11 => Err(InvalidRequest::Host),
        (Some(authority), named) => {
            let host = authority.as_bytes();
            // The authority of HTTP/1.1 overrides `Host`; that of HTTP/2 has to agree with it.
            let agrees = head.version < Version::HTTP_2
                || named.is_none_or(|named| named.eq_ignore_ascii_case(host));
            let is_valid = is_host(host) && Authority::try_from(authority).is_ok();
            if agrees && is_valid { Ok(Some(host)) } else { Err(InvalidRequest::Host) }
        }
        (None, Some(host)) if is_host(host) => Ok(Some(host)),
        (None, None) if head.version < Version::HTTP_11 => Ok(None),
        _ => Err(InvalidRequest::Host),
    }
}

/// Whether a host is a name or an address, with or without a port, in plain characters.
fn is_host(host: &[u8]) -> bool {
    const ADDRESS: [bool; 256] = byte_set(b":.%-_~");
    const NAME: [bool; 256] = byte_set(b"-._~%!$&'()*+,;=");
    let (is_named, port) = match host.strip_prefix(b"[") {
        Some(rest) => {
            let end = rest.iter().position(|byte| *byte == b']').unwrap_or(0);
            let is_address = rest[..end].iter().all(|byte| ADDRESS[usize::from(*byte)]);
            (end > 0 && is_address, rest.get(end + 1..).unwrap_or_default())
        }
        None => {
            let end = host.iter().position(|byte| !NAME[usize::from(*byte)]);
            let end = end.unwrap_or(host.len());
            (end > 0, &host[end..])
        }
    };
    let digits = port.strip_prefix(b":");
    is_named && (port.is_empty() || digits.is_some_and(|port| port.iter().all(u8::is_ascii_digit)))
}

/// Whether a service could confuse a name with a header that decisions read or that concerns the
/// message: `X_Forwarded_For`, `Content.Length`, `X~Real~IP`.
#[cold]
pub(super) fn is_spoofed_name(name: &[u8], is_alias: &impl Fn(&HeaderName) -> bool) -> bool {
    if !is_odd_name(name) {
        return false;
    }
    let folded: Vec<u8> = name.iter().map(|byte| fold_name_byte(*byte)).collect();
    use HeaderClass::{Date, EndToEnd, Expect, Quota};
    let is_ours = !matches!(HeaderClass::of(&folded), EndToEnd | Date | Expect | Quota);
    is_ours || HeaderName::from_bytes(name).is_ok_and(|name| is_alias(&name))
}

/// The value of `Max-Forwards` (RFC 9110, section 7.6.2), which counts for `OPTIONS`. A `TRACE`
/// would show its client the headers that proxies have added.
fn max_forwards(head: &RequestHead<'_>) -> Result<Option<u64>, InvalidRequest> {
    match head.method {
        "TRACE" => Err(InvalidRequest::Trace),
        "OPTIONS" => {
            Ok(head.headers.text("max-forwards").and_then(|value| value.trim().parse().ok()))
        }
        _ => Ok(None),
    }
}
