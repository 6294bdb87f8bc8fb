//! A plain request on its way to a server.

use super::super::forward::{From, via};
use crate::net::Bare;
use hyper::{Version, header::HeaderName};
use tollgate_tower::Head;

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
    fn fields(&self) -> impl Iterator<Item = (&str, &[u8])>;
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

    fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
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
        self.0.target.split_once('?').map_or(self.0.target, |(path, _)| path)
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
    let (mut has_proto, mut has_host) = (false, false);
    for (name, value) in request.fields() {
        match claim(name) {
            Claim::None => line(name, value, out),
            Claim::Host if from.own_host.is_none() => line(name, value, out),
            Claim::Connection | Claim::Host | Claim::Client | Claim::For => {}
            _ if !from.is_trusted => {}
            claim => {
                has_proto |= claim == Claim::Proto;
                has_host |= claim == Claim::ForHost;
                line(name, value, out);
            }
        }
    }
    out.extend_from_slice(b"x-forwarded-for: ");
    if from.is_trusted {
        for (_, value) in request.fields().filter(|(name, _)| claim(name) == Claim::For) {
            out.extend_from_slice(value);
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(from.address.as_bytes());
    out.extend_from_slice(b"\r\n");
    line("x-real-ip", from.client_text().as_bytes(), out);
    if !has_proto {
        let proto = if from.is_tls { b"https".as_slice() } else { b"http" };
        line("x-forwarded-proto", proto, out);
    }
    if !has_host {
        line("x-forwarded-host", request.host(), out);
    }
    if let Some(host) = from.own_host {
        line("host", host.as_bytes(), out);
    }
    line("via", via(request.version()).as_bytes(), out);
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
}

fn claim(name: &str) -> Claim {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    match name.len() {
        4 if is("host") => Claim::Host,
        9 if is("forwarded") => Claim::Other,
        9 if is("x-real-ip") => Claim::Client,
        10 if is("connection") => Claim::Connection,
        12.. if name.as_bytes()[..12].eq_ignore_ascii_case(b"x-forwarded-") => {
            match name[12..].to_ascii_lowercase().as_str() {
                "for" => Claim::For,
                "proto" => Claim::Proto,
                "host" => Claim::ForHost,
                _ => Claim::Other,
            }
        }
        _ => Claim::None,
    }
}

/// One field, its name in lower case as the full protocol has it.
pub(super) fn line(name: &str, value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(name.as_bytes());
    out[start..].make_ascii_lowercase();
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
