//! From the head that a client sent to the one that a server gets, and back.
//!
//! First everything goes that concerns the client's connection only, then what we vouch for ourselves is written. A client
//! can therefore neither have our fields removed by naming them in `Connection` nor get others through under a name that
//! the server takes for ours.

use super::{
    length::{self, Unclear},
    settle::Invalid,
    upgrade,
    upstream::Server,
};
use bytes::Bytes;
use hyper::{
    HeaderMap, Request, StatusCode, Uri, Version,
    header::{self, HeaderName, HeaderValue},
    http::{
        request, response,
        uri::{Authority, PathAndQuery, Scheme},
    },
};
use smallvec::SmallVec;
use std::{borrow::Cow, mem, net::IpAddr};
use tollgate_policy::{
    address::{fold_name_byte, is_odd_name},
    settings::OverrideHeaders,
};
use tollgate_tower::Override;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Names that `Connection` cannot have removed, since they concern more than a connection.
const KEPT: [HeaderName; 8] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
    header::COOKIE,
    header::FORWARDED,
    header::VIA,
    X_REAL_IP,
];

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct From<'a> {
    /// The connection's peer, and the same as text.
    pub(super) peer: IpAddr,
    pub(super) address: &'a HeaderValue,
    /// Whether what it says about others counts.
    pub(super) is_trusted: bool,
    /// The client, as far as trusted proxies vouch for it.
    pub(super) client: IpAddr,
    pub(super) is_tls: bool,
    /// Whether its connection may speak another protocol afterwards.
    pub(super) may_upgrade: bool,
    /// What the server is asked for instead of the client's host.
    pub(super) own_host: Option<&'a HeaderValue>,
    pub(super) override_headers: OverrideHeaders,
}

impl From<'_> {
    /// The client's address as text, which most often is there already.
    pub(super) fn client_text(&self) -> Cow<'_, HeaderValue> {
        if self.client == self.peer {
            return Cow::Borrowed(self.address);
        }
        let text = HeaderValue::try_from(self.client.to_string());
        text.map_or(Cow::Borrowed(self.address), Cow::Owned)
    }
}

/// Turns a request into the one for a server. The value of `Upgrade` where it asks for that.
pub(super) fn request(
    head: &mut request::Parts,
    from: &From<'_>,
    reads: impl Fn(&HeaderName) -> bool,
) -> Result<Option<HeaderValue>, Invalid> {
    head.uri = target(&head.uri)?;
    let headers = &mut head.headers;
    length::settle(headers).map_err(|Unclear| Invalid::Length)?;
    let wants = from.may_upgrade && head.version == Version::HTTP_11 && lists(headers, "upgrade");
    let upgrade = if wants { upgrade::wanted(headers) } else { None };
    let trailers = headers.get_all(header::TE).iter().any(|value| has_token(value, "trailers"));
    let received = mem::replace(&mut head.version, Version::HTTP_11);
    remove_hop_by_hop(headers, &reads);
    headers.remove(header::EXPECT);
    if !from.is_trusted {
        remove_claims(headers);
    }
    if from.override_headers != OverrideHeaders::Pass {
        remove_overrides(headers);
    }
    add_own(headers, from);
    headers.append(header::VIA, HeaderValue::from_static(via(received)));
    if let Some(upgrade) = &upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade.clone());
    } else if trailers {
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    Ok(upgrade)
}

/// The path and query alone, byte for byte.
fn target(uri: &Uri) -> Result<Uri, Invalid> {
    match uri.path_and_query() {
        Some(path) if path.as_str().starts_with('/') || path == "*" => Ok(Uri::from(path.clone())),
        Some(path) if path.as_str().starts_with('?') => {
            // It is shown with the slash that belongs before it.
            PathAndQuery::from_maybe_shared(path.to_string())
                .map(Uri::from)
                .map_err(|_| Invalid::Target)
        }
        None if uri.authority().is_some() => Ok(Uri::from_static("/")),
        _ => Err(Invalid::Target),
    }
}

/// Writes who asks, in fields that nobody else has written.
fn add_own(headers: &mut HeaderMap, from: &From<'_>) {
    let mut all = Vec::new();
    for line in headers.get_all(X_FORWARDED_FOR).iter().filter(|line| !line.is_empty()) {
        all.extend_from_slice(line.as_bytes());
        all.extend_from_slice(b", ");
    }
    let mut by = from.address.clone();
    if !all.is_empty() {
        all.extend_from_slice(from.address.as_bytes());
        by = HeaderValue::from_maybe_shared(Bytes::from(all)).unwrap_or(by);
    }
    headers.insert(X_FORWARDED_FOR, by);
    headers.insert(X_REAL_IP, from.client_text().into_owned());
    // What is empty says nothing.
    let is_said =
        |headers: &HeaderMap, name| headers.get_all(name).iter().any(|value| !value.is_empty());
    if !is_said(headers, X_FORWARDED_PROTO) {
        let proto = if from.is_tls { "https" } else { "http" };
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(proto));
    }
    if let Some(host) = headers.get(header::HOST).cloned()
        && !is_said(headers, X_FORWARDED_HOST)
    {
        headers.insert(X_FORWARDED_HOST, host);
    }
    if let Some(own) = from.own_host {
        headers.insert(header::HOST, own.clone());
    }
}

/// Who passed the request on, and how it came to them.
pub(super) fn via(received: Version) -> &'static str {
    match received {
        Version::HTTP_09 | Version::HTTP_10 => "1.0 tollgate",
        Version::HTTP_11 => "1.1 tollgate",
        _ => "2 tollgate",
    }
}

/// Names the host where HTTP/2 does, and leaves out what it does not have.
pub(super) fn for_two<B>(request: &mut Request<B>, server: &Server) {
    if request.uri().authority().is_none() {
        let headers = request.headers_mut();
        let authority = |value: &HeaderValue| Authority::try_from(value.as_bytes()).ok();
        let host = headers.remove(header::HOST);
        let host = host.as_ref().and_then(authority).or_else(|| authority(&server.authority));
        headers.remove(header::CONNECTION);
        let mut parts = mem::take(request.uri_mut()).into_parts();
        parts.authority = host;
        parts.scheme = Some(if server.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP });
        // Of parts that belong together it cannot fail.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    }
    *request.version_mut() = Version::HTTP_2;
}

/// Undoes it for a request that goes by HTTP/1 after all.
pub(super) fn for_one<B>(request: &mut Request<B>) {
    *request.version_mut() = Version::HTTP_11;
    let Some(authority) = request.uri().authority().cloned() else { return };
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
    let headers = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
        headers.insert(header::HOST, host);
    }
    if headers.contains_key(header::TE) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
}

/// Whether an answer's body is what it looks like: a coding other than `chunked` nobody here undoes, and the client is not told of it.
pub(super) fn is_plain(head: &response::Parts) -> bool {
    let codings = head.headers.get_all(header::TRANSFER_ENCODING);
    codings.iter().all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

/// Turns a server's answer into the one for the client, where it has one length at most and speaks nothing that it was not asked for.
pub(super) fn response(head: &mut response::Parts) -> Result<(), Unclear> {
    let headers = &mut head.headers;
    // One length only: that of the coding, or none where there is nothing that could have one.
    let has_none = head.status.is_informational() || head.status == StatusCode::NO_CONTENT;
    if has_none || headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    length::settle(headers)?;
    let upgrade = match head.status {
        StatusCode::SWITCHING_PROTOCOLS if upgrade::is_foul(headers) => return Err(Unclear),
        StatusCode::SWITCHING_PROTOCOLS => headers.get(header::UPGRADE).cloned(),
        _ => None,
    };
    remove_hop_by_hop(headers, &|_| false);
    if let Some(upgrade) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    }
    head.version = Version::HTTP_11;
    Ok(())
}

type Names = SmallVec<[HeaderName; 8]>;

/// Removes what concerns one connection: the names that always do, and those that `Connection`
/// lists. The work is linear in the
/// length of that list.
fn remove_hop_by_hop(headers: &mut HeaderMap, reads: &impl Fn(&HeaderName) -> bool) {
    let lists: SmallVec<[HeaderValue; 2]> =
        headers.get_all(header::CONNECTION).iter().cloned().collect();
    remove_if(headers, is_hop_by_hop);
    for token in lists.iter().flat_map(|list| list.as_bytes().split(|byte| *byte == b',')) {
        let Ok(name) = HeaderName::from_bytes(token.trim_ascii()) else { continue };
        if !headers.contains_key(&name) {
            continue;
        }
        let is_kept =
            KEPT.contains(&name) || name.as_str().starts_with("x-forwarded-") || reads(&name);
        if !is_kept {
            headers.remove(name);
        }
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    *name == header::CONNECTION
        || *name == header::TRANSFER_ENCODING
        || *name == header::UPGRADE
        || *name == header::TE
        || *name == header::PROXY_AUTHORIZATION
        || *name == header::PROXY_AUTHENTICATE
        || *name == KEEP_ALIVE
        || *name == PROXY_CONNECTION
        || *name == HTTP2_SETTINGS
}

/// Removes from the trailers of a request what has to be said before its body: what is read from fields, and what we say ourselves.
pub(super) fn trailers(trailers: &mut HeaderMap, reads: impl Fn(&HeaderName) -> bool) {
    remove_aliases(trailers);
    remove_claims(trailers);
    remove_overrides(trailers);
    remove_if(trailers, |name| is_hop_by_hop(name) || *name == header::VIA || reads(name));
}

/// Removes all fields of the names that this says.
pub(super) fn remove_if(headers: &mut HeaderMap, goes: impl Fn(&HeaderName) -> bool) {
    let gone: Names = headers.keys().filter(|name| goes(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

/// Removes what only a trusted proxy may say, and whatever a server could take for it or for a field of ours.
fn remove_claims(headers: &mut HeaderMap) {
    remove_if(headers, |name| {
        let text = name.as_str();
        *name == header::FORWARDED || *name == X_REAL_IP || text.starts_with("x-forwarded-")
    });
}

/// Removes headers that replace the path or the method in some services.
fn remove_overrides(headers: &mut HeaderMap) {
    remove_if(headers, |name| Override::of(name.as_str().as_bytes()).is_some());
}

/// Removes fields under names that some servers take for others: `X_Forwarded_For`,
/// `Content.Length`, `X~Real~IP`.
pub(super) fn remove_aliases(headers: &mut HeaderMap) {
    let odd = |name: &HeaderName| is_odd_name(name.as_str().as_bytes());
    if !headers.keys().any(odd) {
        return;
    }
    remove_if(headers, |name| {
        let folded: Vec<u8> = name.as_str().bytes().map(fold_name_byte).collect();
        let is_ours = folded.starts_with(b"x-forwarded-")
            || Override::of(&folded).is_some()
            || HeaderName::from_bytes(&folded)
                .is_ok_and(|name| KEPT.contains(&name) || is_hop_by_hop(&name));
        odd(name) && is_ours
    });
}

/// Whether `Connection` lists a token.
fn lists(headers: &HeaderMap, token: &str) -> bool {
    headers.get_all(header::CONNECTION).iter().any(|value| has_token(value, token))
}

fn has_token(value: &HeaderValue, token: &str) -> bool {
    let mut items = value.as_bytes().split(|byte| *byte == b',');
    items.any(|item| {
        let item = item.split(|byte| *byte == b';').next().unwrap_or_default();
        item.trim_ascii().eq_ignore_ascii_case(token.as_bytes())
    })
}

#[cfg(test)]
mod tests;
