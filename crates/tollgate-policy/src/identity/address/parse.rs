//! Parses an address in any notation that proxies write.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::canonical::unmap;

/// Text that is not an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidAddress;

impl fmt::Display for InvalidAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an IP address; write it as 192.0.2.1 or 2001:db8::1")
    }
}

impl std::error::Error for InvalidAddress {}

/// Parses an address with or without a port, brackets and a zone, and unmaps it.
///
/// ```
/// use tollgate_policy::address::parse;
///
/// let plain = parse("192.0.2.1");
/// assert_eq!(parse("192.0.2.1:8080"), plain);
/// assert_eq!(parse("[::ffff:192.0.2.1]:8080"), plain);
/// assert_eq!(parse("::ffff:c000:201%eth0"), plain);
/// assert!(parse("192.0.2.1.example.com").is_err());
/// ```
pub fn parse(text: &str) -> Result<IpAddr, InvalidAddress> {
    read(text).map(unmap).ok_or(InvalidAddress)
}

fn read(text: &str) -> Option<IpAddr> {
    if let Some(plain) = v4(text) {
        return Some(plain);
    }
    if let Some(bracketed) = text.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']')?;
        if !port.is_empty() {
            check_port(port.strip_prefix(':')?)?;
        }
        return v6(address);
    }
    let (address, port) = text.split_once(':')?;
    if port.contains(':') {
        return v6(text);
    }
    // A single colon separates an IPv4 address from a port; an IPv6 address has two or more.
    check_port(port)?;
    v4(address)
}

fn v4(text: &str) -> Option<IpAddr> {
    text.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

/// Parses an IPv6 address. A zone names an interface of the machine that wrote it: it is checked
/// and dropped.
fn v6(text: &str) -> Option<IpAddr> {
    let address = match text.split_once('%') {
        Some((address, zone)) => {
            let allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'[' | b']');
            if zone.is_empty() || !zone.bytes().all(allowed) {
                return None;
            }
            address
        }
        None => text,
    };
    address.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// Checks a `node-port` of RFC 7239: a number or an obfuscated name.
fn check_port(port: &str) -> Option<()> {
    let is_number = (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    let is_obfuscated = port.strip_prefix('_').is_some_and(|name| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        !name.is_empty() && name.bytes().all(allowed)
    });
    (is_number || is_obfuscated).then_some(())
}
