//! What else a connection may speak.
//!
//! After an upgrade the gateway sees bytes only. A client that could speak HTTP by them, in another
//! version or inside TLS, would ask for whatever it likes on the strength of one request that was
//! decided.

/// The protocols among those asked for that may be agreed on; `None` where there are none.
pub(super) fn allowed_protocols<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let wanted: Vec<&[u8]> = protocols(lines).filter(|protocol| !carries_http(protocol)).collect();
    (!wanted.is_empty()).then(|| wanted.join(&b", "[..]))
}

/// Whether requests come by any of these protocols, so that none of them was offered.
pub(super) fn any_carries_http<'a>(lines: impl Iterator<Item = &'a [u8]>) -> bool {
    protocols(lines).any(carries_http)
}

fn protocols<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    lines
        .flat_map(|line| line.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|protocol| !protocol.is_empty())
}

/// Whether requests of HTTP come by a protocol, whatever its version.
fn carries_http(protocol: &[u8]) -> bool {
    let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
    let known = [&b"h2c"[..], b"h2", b"h3", b"http", b"https", b"tls", b"ssl", b"spdy"];
    known.iter().any(|known| name.trim_ascii().eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests;
