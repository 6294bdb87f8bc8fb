//! Which protocol a connection speaks.

use super::{http1::PushbackRead, stream::ConnectionStream};
use std::io;
use tokio::io::AsyncReadExt;

/// What an HTTP/2 client says first (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpVersion {
    Http1,
    Http2,
}

/// Reads until the bytes differ from the preface or are all of it. They stay to be read again.
pub(super) async fn sniff(stream: &mut ConnectionStream) -> io::Result<HttpVersion> {
    let mut seen = [0; PREFACE.len()];
    let mut len = 0;
    let version = loop {
        let read = stream.read(&mut seen[len..]).await?;
        len += read;
        match () {
            () if seen[..len] != PREFACE[..len] || read == 0 => break HttpVersion::Http1,
            () if len == PREFACE.len() => break HttpVersion::Http2,
            () => {}
        }
    };
    stream.unread(&seen[..len]);
    Ok(version)
}
