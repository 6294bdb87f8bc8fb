//! What else a connection may speak.
//!
//! After an upgrade the gateway sees bytes only. Whoever could speak HTTP by them, in another version or inside TLS, would ask for whatever they like
//! on the strength of one request that was decided.

use hyper::{
    HeaderMap,
    header::{HeaderValue, UPGRADE},
};

/// The protocols among those asked for that may be agreed on; `None` where there are none.
pub(super) fn wanted(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut all = Vec::new();
    for protocol in protocols(headers).filter(|protocol| !carries_requests(protocol)) {
        if !all.is_empty() {
            all.extend_from_slice(b", ");
        }
        all.extend_from_slice(protocol);
    }
    HeaderValue::from_maybe_shared(bytes::Bytes::from(all)).ok().filter(|all| !all.is_empty())
}

/// Whether a server agrees to something that was not offered to it.
pub(super) fn is_foul(headers: &HeaderMap) -> bool {
    protocols(headers).any(carries_requests)
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(UPGRADE).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|protocol| !protocol.is_empty())
}

/// Whether requests of HTTP come by a protocol, whatever its version.
fn carries_requests(protocol: &[u8]) -> bool {
    let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
    let known = [&b"h2c"[..], b"h2", b"h3", b"http", b"https", b"tls", b"ssl", b"spdy"];
    known.iter().any(|known| name.trim_ascii().eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests;
