//! A request's head, made to say one thing to everybody.

use super::{forward::remove_aliases, two};
use crate::net::is_host;
use bytes::Bytes;
use hyper::{
    Method, StatusCode, Version,
    header::{self, HeaderValue},
    http::{request, uri::Scheme},
};

/// Why a request goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Invalid {
    /// No host, several, or what is none.
    Host,
    /// A method that asks for a tunnel.
    Connect,
    /// A target that is no path.
    Target,
    /// Two lengths.
    Length,
    /// Two that ask.
    Authorization,
    /// It ends here, and is to be shown to whoever sent it.
    Trace,
}

impl Invalid {
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

/// Whether the target is a path, with or without what comes before one, or the `*` of `OPTIONS`. Anything else a server could take for a path
/// that no limit saw: `GET x` names a host, and is a request for `/` to whoever goes on with the path of it.
fn is_path(head: &request::Parts) -> bool {
    let names_host_alone = head.uri.authority().is_some() && head.uri.scheme().is_none();
    // In HTTP/2 a scheme is no part of the target.
    let is_of_http = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
    if head.version < Version::HTTP_2 && !head.uri.scheme().is_none_or(is_of_http) {
        return false;
    }
    match head.uri.path() {
        "*" => head.method == Method::OPTIONS,
        path => path.starts_with('/') && !names_host_alone,
    }
}

/// Makes a head say one thing to everybody: which host is meant, and nothing under two names. To be done before anything looks at it.
pub(super) fn settle(head: &mut request::Parts) -> Result<(), Invalid> {
    settle_host(head)?;
    remove_aliases(&mut head.headers);
    Ok(())
}

/// Makes `Host` say which host is meant, whatever the version, and refuses what could be read in two ways.
fn settle_host(head: &mut request::Parts) -> Result<(), Invalid> {
    if head.method == Method::CONNECT {
        return Err(Invalid::Connect);
    }
    if !is_path(head) {
        return Err(Invalid::Target);
    }
    // Of two a server might take the one that was not looked at.
    if head.headers.get_all(header::AUTHORIZATION).iter().nth(1).is_some() {
        return Err(Invalid::Authorization);
    }
    if head.version >= Version::HTTP_2 {
        two::settle(&mut head.headers)?;
    }
    let mut named = head.headers.get_all(header::HOST).iter();
    let host = named.next();
    if named.next().is_some() {
        return Err(Invalid::Host);
    }
    match (head.uri.authority(), host) {
        (Some(authority), host) => {
            let differs = host.is_some_and(|host| {
                !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes())
            });
            // HTTP/1 has the authority win; in HTTP/2 nobody sends two that differ by mistake.
            if head.version >= Version::HTTP_2 && differs {
                return Err(Invalid::Host);
            }
            let value = HeaderValue::from_maybe_shared(Bytes::copy_from_slice(
                authority.as_str().as_bytes(),
            ));
            let value =
                value.ok().filter(|value| is_host(value.as_bytes())).ok_or(Invalid::Host)?;
            head.headers.insert(header::HOST, value);
            Ok(())
        }
        (None, Some(host)) if is_host(host.as_bytes()) => Ok(()),
        (None, None) if head.version < Version::HTTP_11 => Ok(()),
        _ => Err(Invalid::Host),
    }
}
