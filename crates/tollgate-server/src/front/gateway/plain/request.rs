//! A plain request on its way to a server.

use super::{
    super::forward::{From, via},
    line::{known, line},
};
use crate::net::Bare;
use hyper::{Version, header::HeaderName};
use tollgate_policy::settings::OverrideHeaders;
use tollgate_tower::{Head, Override};

/// A plain request, however it is kept.
pub(super) trait Plain {
    /// The method.
    fn method(&self) -> &str;

    /// A path that begins with a slash, and perhaps a query.
    fn target(&self) -> &str;

    /// Which host is meant, by the only field that says so.
    fn host(&self) -> &[u8];

    /// By which version it came.
    fn version(&self) -> Version;

    /// The body; nothing, without one.
    fn body(&self) -> &[u8];

    /// Names, in any case, and values.
    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])>;
}

impl Plain for Bare<'_> {
    fn method(&self) -> &str {
        self.method
    }

    fn target(&self) -> &str {
        self.target
    }

    fn host(&self) -> &[u8] {
        self.host
    }

    fn body(&self) -> &[u8] {
        self.body
    }

    fn version(&self) -> Version {
        Version::HTTP_11
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        Bare::fields(self)
    }
}

/// Reads facts from a plain request, where it lies.
pub(super) struct Read<'a>(pub(super) Bare<'a>);

impl Head for Read<'_> {
    fn method(&self) -> &str {
        self.0.method
    }

    fn path(&self) -> &str {
        let end = memchr::memchr(b'?', self.0.target.as_bytes());
        end.map_or(self.0.target, |end| &self.0.target[..end])
    }

    fn query(&self) -> Option<&str> {
        self.0.target.split_once('?').map(|(_, query)| query)
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn lines<'h>(&'h self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'h [u8]> {
        self.0.named(name.as_str())
    }
}

/// Writes the request that a server gets: what [`forward`](super::super::forward) makes of the same head.
pub(super) fn write(request: &impl Plain, from: &From<'_>, out: &mut Vec<u8>) {
    for part in [request.method(), " ", request.target(), " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    let is_said = |claimed: Claim| {
        let is_it = |(name, value): (&[u8], &[u8])| claim(name) == claimed && !value.is_empty();
        from.is_trusted && request.fields().any(is_it)
    };
    let (has_proto, has_host) = (is_said(Claim::Proto), is_said(Claim::ForHost));
    for (name, value) in request.fields() {
        match claim(name) {
            Claim::None => line(name, value, out),
            Claim::Host if from.own_host.is_none() => line(name, value, out),
            Claim::Connection | Claim::Host | Claim::Client | Claim::For => {}
            Claim::Override if from.override_headers != OverrideHeaders::Pass => {}
            Claim::Override => line(name, value, out),
            _ if !from.is_trusted => {}
            // What is empty says nothing, and is said here.
            Claim::Proto if !has_proto => {}
            Claim::ForHost if !has_host => {}
            _ => line(name, value, out),
        }
    }
    out.extend_from_slice(b"x-forwarded-for: ");
    if from.is_trusted {
        let is_for =
            |(name, value): &(&[u8], &[u8])| claim(name) == Claim::For && !value.is_empty();
        for (_, value) in request.fields().filter(is_for) {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(from.address.as_bytes());
    out.extend_from_slice(b"\r\n");
    known(b"x-real-ip: ", from.client_text().as_bytes(), out);
    if !has_proto {
        out.extend_from_slice(match from.is_tls {
            true => b"x-forwarded-proto: https\r\n".as_slice(),
            false => b"x-forwarded-proto: http\r\n",
        });
    }
    if !has_host {
        known(b"x-forwarded-host: ", request.host(), out);
    }
    if let Some(host) = from.own_host {
        known(b"host: ", host.as_bytes(), out);
    }
    known(b"via: ", via(request.version()).as_bytes(), out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(request.body());
}

/// What a field of a request is about, as far as it matters on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    None,
    Connection,
    Host,
    /// Who asks, in a field of our own.
    Client,
    /// By which proxies a request came.
    For,
    Proto,
    ForHost,
    /// Something else that only trusted proxies may say.
    Other,
    /// Override headers: some services take them for the path or the method.
    Override,
}

fn claim(name: &[u8]) -> Claim {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    match name.len() {
        4 if is(b"host") => Claim::Host,
        9 if is(b"forwarded") => Claim::Other,
        9 if is(b"x-real-ip") => Claim::Client,
        10 if is(b"connection") => Claim::Connection,
        12.. if name[..12].eq_ignore_ascii_case(b"x-forwarded-") => {
            match name[12..].to_ascii_lowercase().as_slice() {
                b"for" => Claim::For,
                b"proto" => Claim::Proto,
                b"host" => Claim::ForHost,
                _ => Claim::Other,
            }
        }
        _ if Override::of(name).is_some() => Claim::Override,
        _ => Claim::None,
    }
}
