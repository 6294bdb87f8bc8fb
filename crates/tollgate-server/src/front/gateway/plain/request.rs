//! A plain request on its way to a server.

use crate::net::Bare;
use hyper::header::{HeaderName, HeaderValue};
use std::{io::Write, net::IpAddr};
use tollgate_tower::Head;

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
        self.0
            .fields()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_str()))
            .map(|(_, value)| value)
    }
}

/// Writes the request that a server gets from a peer whose word about others does not count: what [`forward`](super::super::forward) makes of the
/// same head.
pub(super) fn write(
    request: &Bare<'_>,
    peer: IpAddr,
    is_tls: bool,
    own_host: Option<&HeaderValue>,
    out: &mut Vec<u8>,
) {
    for part in [request.method, " ", request.target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in request.fields() {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            10 if is("connection") => continue,
            9 if is("forwarded") => continue,
            9 if is("x-real-ip") => continue,
            4 if own_host.is_some() && is("host") => continue,
            12.. if name.as_bytes()[..12].eq_ignore_ascii_case(b"x-forwarded-") => continue,
            _ => line(name, value, out),
        }
    }
    let start = out.len();
    // Writing to memory cannot fail.
    let _ = write!(out, "x-forwarded-for: {peer}\r\n");
    let peer = start + "x-forwarded-for: ".len()..out.len();
    out.extend_from_slice(b"x-real-ip: ");
    out.extend_from_within(peer);
    out.extend_from_slice(match is_tls {
        true => b"x-forwarded-proto: https\r\n".as_slice(),
        false => b"x-forwarded-proto: http\r\n".as_slice(),
    });
    line("x-forwarded-host", request.host, out);
    if let Some(host) = own_host {
        line("host", host.as_bytes(), out);
    }
    out.extend_from_slice(b"via: 1.1 tollgate\r\n\r\n");
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
