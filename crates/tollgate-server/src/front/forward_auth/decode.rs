//! Decodes a proxy's call: the client's request, and the parameters of the call.

use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Uri};
use tollgate_policy::hex::{Plus, percent_encode, unescape};
use tollgate_policy::limit::is_named;
use tollgate_policy::policy::Policy;
use tollgate_policy::settings::OverrideHeaders;
use tollgate_tower::{Ambiguity, Override};

/// A call of a proxy.
#[derive(Debug)]
pub(super) struct AuthRequest {
    /// The head of the client's request.
    pub(super) head: Parts,
    /// The limits that apply, if the call names some.
    pub(super) limit_indexes: Option<Vec<usize>>,
    pub(super) cost: u64,
    pub(super) deny_status: Option<u16>,
    /// The reason to deny the request without a decision.
    pub(super) ambiguous: Option<AmbiguousRequest>,
}

/// The reason to deny a request without a decision: the service could read the request differently
/// from how it would be counted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AmbiguousRequest {
    /// A fragment: some services cut a target at `#`, others do not.
    #[error("the target has a fragment")]
    Fragment,
    /// A tunnel: the service would read its bytes as requests, and the proxy asks about none of
    /// them.
    #[error("CONNECT opens a tunnel, whose requests are not counted")]
    Connect,
    /// A header that some services treat like a counted one. JSON escapes no character of its name.
    #[error("the header {0} looks like one that counts")]
    Alias(HeaderName),
    /// Two headers with contradicting descriptions of the request: the client wrote one of them.
    #[error("two headers name different {}s", .0.name())]
    Contradiction(RequestPart),
    /// A header that makes some services replace the path or the method.
    #[error("the header {0} differs from the request")]
    Override(HeaderName),
    /// The client's query contains the parameters of the call: either side may have written them.
    #[error("the query repeats parameters of the call")]
    Parameters,
    /// A malformed head of the call, which contains the client's headers.
    #[error("the request's head is malformed")]
    Head,
    /// An ambiguous path, or an attribute with two values.
    #[error("{0}")]
    Read(Box<Ambiguity>),
}

/// The part of the client's request that a header describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPart {
    Method,
    Target,
    Host,
}

/// A call without an answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AuthRequestError {
    /// The caller is not a trusted proxy.
    #[error("the client is not in `trusted_proxies`; add the proxy's address there")]
    Untrusted,
    /// These headers are missing or malformed.
    #[error("the client is in `trusted_proxies`, but sends no valid {0}; see docs/forward-auth")]
    MissingHeader(&'static str),
    /// An unknown or malformed parameter: its name, and its value unless it may be secret.
    #[error(
        "`{}` is not a parameter; the parameters are policy=NAME, deny_status=401, 403 or 429, and cost=N",
        .0.escape_debug()
    )]
    Parameter(Box<str>),
    /// An unknown limit.
    #[error("no limit is named `{}`", .0.escape_debug())]
    Limit(Box<str>),
}

/// Decodes the call from the head of a request to [`PATH`](super::PATH).
pub(super) fn read_request(
    mut head: Parts,
    policy: &Policy,
    override_headers: OverrideHeaders,
) -> Result<AuthRequest, AuthRequestError> {
    const METHOD: AuthRequestError =
        AuthRequestError::MissingHeader("X-Forwarded-Method or X-Original-Method");
    const TARGET: AuthRequestError =
        AuthRequestError::MissingHeader("X-Forwarded-Uri or X-Original-URI");
    let headers = &head.headers;
    let mut ambiguous = None;
    let methods = ["x-forwarded-method", "x-original-method"];
    let method =
        common_value(headers, &methods, RequestPart::Method, &mut ambiguous).ok_or(METHOD)?;
    let method = Method::from_bytes(method).map_err(|_| METHOD)?;
    let targets = ["x-forwarded-uri", "x-original-uri", "x-original-url"];
    let target =
        common_value(headers, &targets, RequestPart::Target, &mut ambiguous).ok_or(TARGET)?;
    if target.contains(&b'#') {
        ambiguous.get_or_insert(AmbiguousRequest::Fragment);
    }
    let uri: Uri = escape(target).parse().map_err(|_| TARGET)?;
    // `login` alone would be a host name.
    if uri.scheme().is_none() && !matches!(target, [b'/', ..] | b"*") {
        if method != Method::CONNECT {
            return Err(TARGET);
        }
        ambiguous.get_or_insert(AmbiguousRequest::Connect);
    }
    let host = host(headers, &mut ambiguous)?;
    if ambiguous.is_none() && override_headers != OverrideHeaders::Pass {
        ambiguous = differing_override(headers, &method, path_and_query(target));
    }
    // Some proxies append the client's own query. A client must not choose the parameters, nor
    // disable the operator's by repeating them.
    let query = head.uri.query().unwrap_or("");
    let shared = shares_query(&escape(query.as_bytes()), uri.query().unwrap_or(""));
    let (only, cost, deny_status) = match parameters(query, policy) {
        Err(_) if shared == Some(SharedQuery::All) => (None, 1, None),
        parameters => parameters?,
    };
    if shared.is_some() && (only.is_some() || cost != 1 || deny_status.is_some()) {
        ambiguous.get_or_insert(AmbiguousRequest::Parameters);
    }
    // The remaining headers are the client's own.
    let mut fields = std::mem::take(&mut head.headers);
    if let Some(host) = host {
        fields.insert(header::HOST, host);
    }
    let (mut head, ()) = Request::new(()).into_parts();
    (head.method, head.uri, head.headers) = (method, uri, fields);
    Ok(AuthRequest { head, limit_indexes: only, cost, deny_status, ambiguous })
}

/// The share of the call's query that is the client's own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SharedQuery {
    All,
    /// The start or the end.
    Part,
}

fn shares_query(query: &str, clients: &str) -> Option<SharedQuery> {
    let is_part = || {
        query.strip_prefix(clients).is_some_and(|rest| rest.starts_with('&'))
            || query.strip_suffix(clients).is_some_and(|rest| rest.ends_with('&'))
    };
    match clients {
        "" => None,
        _ if query == clients => Some(SharedQuery::All),
        _ => is_part().then_some(SharedQuery::Part),
    }
}

/// The `deny_status` parameter of a call whose head is malformed.
pub(super) fn deny_status(query: &str) -> Option<u16> {
    let value =
        query.split('&').filter_map(|pair| pair.strip_prefix("deny_status=")).next_back()?;
    matches!(value, "401" | "403" | "429").then(|| value.parse().ok())?
}

/// The value of these headers, if all are equal. A proxy sets some of them; if two differ, a client
/// wrote one.
fn common_value<'h>(
    headers: &'h HeaderMap,
    names: &[&str],
    asks: RequestPart,
    ambiguous: &mut Option<AmbiguousRequest>,
) -> Option<&'h [u8]> {
    let lines = names.iter().flat_map(|name| headers.get_all(*name));
    let mut values = lines.map(|value| value.as_bytes().trim_ascii()).filter(|v| !v.is_empty());
    let first = values.next()?;
    let differs = |value: &[u8]| match asks {
        RequestPart::Target => path_and_query(value) != path_and_query(first),
        RequestPart::Method | RequestPart::Host => value != first,
    };
    if values.any(differs) {
        ambiguous.get_or_insert(AmbiguousRequest::Contradiction(asks));
    }
    Some(first)
}

/// The host of the request, from `X-Forwarded-Host` and from targets with a host.
fn host(
    headers: &HeaderMap,
    ambiguous: &mut Option<AmbiguousRequest>,
) -> Result<Option<HeaderValue>, AuthRequestError> {
    const HOST: AuthRequestError = AuthRequestError::MissingHeader("X-Forwarded-Host");
    let named = common_value(headers, &["x-forwarded-host"], RequestPart::Host, ambiguous);
    let targets = ["x-forwarded-uri", "x-original-uri", "x-original-url"];
    let lines = targets.iter().flat_map(|name| headers.get_all(*name));
    let mut hosts = named.into_iter().chain(lines.filter_map(|value| authority(value.as_bytes())));
    let Some(first) = hosts.next() else { return Ok(None) };
    if hosts.any(|host| !host.eq_ignore_ascii_case(first)) {
        ambiguous.get_or_insert(AmbiguousRequest::Contradiction(RequestPart::Host));
    }
    HeaderValue::from_bytes(first).map(Some).map_err(|_| HOST)
}

/// The index after `http://` in a target, if present.
fn after_scheme(target: &[u8]) -> Option<usize> {
    let place = target.windows(3).position(|three| three == b"://")?;
    target[..place].iter().all(u8::is_ascii_alphabetic).then_some(place + 3)
}

fn authority(target: &[u8]) -> Option<&[u8]> {
    let rest = &target.trim_ascii()[after_scheme(target.trim_ascii())?..];
    rest.split(|byte| matches!(byte, b'/' | b'?' | b'#')).next()
}

/// A target without scheme and authority.
fn path_and_query(target: &[u8]) -> &[u8] {
    let Some(start) = after_scheme(target) else { return target };
    let rest = &target[start..];
    match rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')) {
        Some(place) => &rest[place..],
        None => b"/",
    }
}

/// An override header that differs from the counted request. The service receives it, and may obey
/// it.
fn differing_override(
    headers: &HeaderMap,
    method: &Method,
    target: &[u8],
) -> Option<AmbiguousRequest> {
    let is_suspicious = |name: &&HeaderName| {
        let folded = name.as_str().replace(['_', '.'], "-");
        Override::UNREAD.contains(&&*folded)
    };
    let differs = |name: &&HeaderName| {
        let of = Override::of(name.as_str().replace(['_', '.'], "-").as_bytes());
        headers.get_all(*name).iter().map(|value| value.as_bytes().trim_ascii()).any(|value| {
            match of {
                Some(Override::Method) => !value.eq_ignore_ascii_case(method.as_str().as_bytes()),
                _ => path_and_query(value) != target,
            }
        })
    };
    headers.keys().filter(is_suspicious).find(differs).cloned().map(AmbiguousRequest::Override)
}

/// Escapes bytes that a URI cannot have: proxies forward targets unchecked.
fn escape(target: &[u8]) -> String {
    percent_encode(target, |byte| matches!(byte, b'!'..=b'~') && !b"#\"<>\\^`{|}".contains(&byte))
}

type QueryParameters = (Option<Vec<usize>>, u64, Option<u16>);

/// Parses the parameters. Names of limits may be percent-encoded or not.
fn parameters(query: &str, policy: &Policy) -> Result<QueryParameters, AuthRequestError> {
    let (mut only, mut cost, mut deny_status) = (None, 1, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let wrong = || AuthRequestError::Parameter(loggable_parameter(pair).into());
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        match (name, value) {
            ("policy", value) => {
                let value = unescape(value.as_bytes(), Plus::Space);
                let value = String::from_utf8_lossy(&value);
                let places = limits_named(&value, policy);
                if places.is_empty() {
                    return Err(AuthRequestError::Limit((*value).into()));
                }
                only.get_or_insert_with(Vec::new).extend(places);
            }
            ("deny_status", "401" | "403" | "429") => deny_status = value.parse().ok(),
            ("cost", value) if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                cost = value.parse().map_err(|_| wrong())?;
            }
            _ => return Err(wrong()),
        }
    }
    Ok((only, cost, deny_status))
}

/// A parameter without its value, for the log: it may be the client's, and its value a token.
fn loggable_parameter(pair: &str) -> &str {
    match pair.split_once('=') {
        Some(("deny_status" | "cost", _)) => pair,
        Some((name, _)) => name,
        None => "",
    }
}

/// The limit with this name, or all limits of an entry with `keys`.
fn limits_named(name: &str, policy: &Policy) -> Vec<usize> {
    let limits = policy.nameable_limits();
    limits.filter(|(_, limit)| is_named(&limit.name, name)).map(|(place, _)| place).collect()
}

impl RequestPart {
    const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Target => "target",
            Self::Host => "host",
        }
    }
}

impl AmbiguousRequest {
    /// The reason in one word, for the proxy.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Fragment => "fragment",
            Self::Connect => "connect",
            Self::Alias(_) => "alias",
            Self::Contradiction(part) => part.name(),
            Self::Override(_) => "override",
            Self::Parameters => "parameters",
            Self::Head => "head",
            Self::Read(ambiguity) => ambiguity.reason(),
        }
    }
}
