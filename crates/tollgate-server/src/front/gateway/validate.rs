//! A request's head: one meaning, or none.

use crate::net::{Headers, RequestHead};
use hyper::{
    StatusCode, Version,
    header::HeaderName,
    http::uri::{Authority, PathAndQuery},
};
use tollgate_policy::address::{fold_name_byte, is_odd_name};
use tollgate_tower::{HeaderClass, is_header};

/// Why a request goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidRequest {
    /// No host, several, or a malformed one.
    Host,
    /// A method that asks for a tunnel.
    Connect,
    /// A target that is no path.
    Target,
    /// Two lengths.
    Length,
    /// Two that ask.
    Authorization,
    /// It ends here, and is to be shown to the client that sent it.
    Trace,
}

impl InvalidRequest {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Target | Self::Length | Self::Authorization => {
                StatusCode::BAD_REQUEST
            }
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Self::Trace => StatusCode::NOT_IMPLEMENTED,
        }
    }

    pub(super) fn detail(self) -> &'static str {
        match self {
            Self::Host => "the request does not name one host",
            Self::Connect => "tunnels are not offered here",
            Self::Target => "the request's target is not a path",
            Self::Length => "the request has two lengths",
            Self::Authorization => "the request has two fields `Authorization`",
            Self::Trace => "requests are not shown here",
        }
    }
}

/// A head that says one thing to everybody.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValidHead<'a> {
    /// Without headers that a service could take for others.
    pub(super) head: RequestHead<'a>,
    /// Which host is meant. Only HTTP/1.0 may leave it open.
    pub(super) host: Option<&'a [u8]>,
    /// How many proxies the request may still pass, this one counted.
    pub(super) max_forwards: Option<u64>,
    /// Whether it has `Connection` or `TE`.
    pub(super) has_connection_headers: bool,
    /// Whether it has `Content-Length`.
    pub(super) has_length: bool,
}

/// Checks a head. `is_alias`: whether a service could take a header of this name for one that
/// counts.
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
    let (mut hosts, mut lengths, mut authorizations, mut is_odd) = (0, 0, 0, false);
    let (mut named, mut has_connection_headers) = (None, false);
    for (name, value) in head.headers.iter() {
        let is = |known: &str| is_header(name, known);
        is_odd |= is_odd_name(name);
        match name.len() {
            2 if is("te") => has_connection_headers = true,
            4 if is("host") => (hosts, named) = (hosts + 1, Some(value)),
            10 if is("connection") => has_connection_headers = true,
            13 if is("authorization") => authorizations += 1,
            14 if is("content-length") => lengths += 1,
            _ => {}
        }
    }
    // Of two a service might take the one that was not looked at.
    if authorizations > 1 {
        return Err(InvalidRequest::Authorization);
    }
    if lengths > 1 {
        return Err(InvalidRequest::Length);
    }
    if hosts > 1 {
        return Err(InvalidRequest::Host);
    }
    let host = host(&head, named)?;
    if is_odd {
        hide_aliases(&mut head.headers, is_alias);
    }
    let max_forwards = max_forwards(&head)?;
    Ok(ValidHead { head, host, max_forwards, has_connection_headers, has_length: lengths > 0 })
}

/// Whether the target is a path, with or without what comes before one, or the `*` of `OPTIONS`.
/// Anything else a service could take for a path that no limit saw.
fn is_path(head: &RequestHead<'_>) -> bool {
    if is_plain_target(head.target) {
        return true;
    }
    if head.target == "*" {
        return head.method == "OPTIONS";
    }
    let is_absolute = !head.target.starts_with('/');
    if is_absolute {
        let Some((scheme, _)) = head.target.split_once("://") else { return false };
        let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        if !is_http || head.version >= Version::HTTP_2 {
            return false;
        }
    }
    PathAndQuery::try_from(head.path_and_query()).is_ok()
}

/// Whether a target is a path that every reader takes for the same, in characters that need no
/// second look.
fn is_plain_target(target: &str) -> bool {
    const PLAIN: [bool; 256] = byte_set(b"/-._~%?=&:@!$'()*+,;");
    target.starts_with('/') && target.bytes().all(|byte| PLAIN[usize::from(byte)])
}

/// Letters, digits and these others.
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

/// The one host that a request means.
fn host<'a>(
    head: &RequestHead<'a>,
    named: Option<&'a [u8]>,
) -> Result<Option<&'a [u8]>, InvalidRequest> {
    match (head.target_authority(), named) {
        // RFC 9112, section 3.2: every request of HTTP/1.1 has one.
        (Some(_), None) if head.version == Version::HTTP_11 => Err(InvalidRequest::Host),
        (Some(authority), named) => {
            let differs =
                named.is_some_and(|named| !named.eq_ignore_ascii_case(authority.as_bytes()));
            // HTTP/1 has the authority win; in HTTP/2 nobody sends two that differ by mistake.
            if head.version >= Version::HTTP_2 && differs {
                return Err(InvalidRequest::Host);
            }
            let is_valid = is_host(authority.as_bytes()) && Authority::try_from(authority).is_ok();
            if is_valid { Ok(Some(authority.as_bytes())) } else { Err(InvalidRequest::Host) }
        }
        (None, Some(host)) if is_host(host) => Ok(Some(host)),
        (None, None) if head.version < Version::HTTP_11 => Ok(None),
        _ => Err(InvalidRequest::Host),
    }
}

/// A name and a port, or an address, in characters that no reader takes for anything else.
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
            let end = host.iter().position(|byte| *byte == b':').unwrap_or(host.len());
            let is_name = host[..end].iter().all(|byte| NAME[usize::from(*byte)]);
            (end > 0 && is_name, &host[end..])
        }
    };
    let digits = port.strip_prefix(b":");
    is_named && (port.is_empty() || digits.is_some_and(|port| port.iter().all(u8::is_ascii_digit)))
}

/// Hides headers under names that some services take for others: `X_Forwarded_For`,
/// `Content.Length`, `X~Real~IP`.
#[cold]
fn hide_aliases(headers: &mut Headers<'_>, is_alias: impl Fn(&HeaderName) -> bool) {
    headers.hide(|name| is_spoofed_name(name, &is_alias));
}

/// Whether a name is one that services may take for a header that counts or that concerns the
/// message.
pub(super) fn is_spoofed_name(name: &[u8], is_alias: &impl Fn(&HeaderName) -> bool) -> bool {
    if !is_odd_name(name) {
        return false;
    }
    let folded: Vec<u8> = name.iter().map(|byte| fold_name_byte(*byte)).collect();
    let class = HeaderClass::of(&folded);
    let is_ours = !matches!(
        class,
        HeaderClass::EndToEnd | HeaderClass::Date | HeaderClass::Expect | HeaderClass::Quota
    );
    is_ours || HeaderName::from_bytes(name).is_ok_and(|name| is_alias(&name))
}

/// How many proxies `OPTIONS` and `TRACE` may still pass, where they say so (RFC 9110, section
/// 7.6.2).
fn max_forwards(head: &RequestHead<'_>) -> Result<Option<u64>, InvalidRequest> {
    if !matches!(head.method, "OPTIONS" | "TRACE") {
        return Ok(None);
    }
    // A value that is no number is ignored.
    let said = head.headers.text("max-forwards").and_then(|value| value.trim().parse().ok());
    match said {
        // To show a request to the client that sent it is to show what others have added to it.
        Some(0) if head.method == "TRACE" => Err(InvalidRequest::Trace),
        said => Ok(said),
    }
}
