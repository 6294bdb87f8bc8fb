//! The `Forwarded` header of RFC 7239: `for="[2001:db8::1]:47011";proto=https, for=192.0.2.7`.
//!
//! The header is split from the right, where trusted proxies append. Split from the left, a quote
//! that a client leaves open would swallow the proxies' items.

use std::net::IpAddr;

use super::list::trim;
use super::parse;

/// The longest quoted address with zone and port. A longer item is not an address.
const NODE_MAX: usize = 128;

/// Returns the `for` addresses of one line, from the right; `None` for an element without one.
pub(super) fn from_right(line: &[u8]) -> impl Iterator<Item = Option<IpAddr>> {
    SplitFromRight { rest: Some(line), separator: b',' }
        .map(trim)
        .filter(|element| !element.is_empty())
        .map(address)
}

/// Returns the address of an element's `for` parameter, if it has exactly one.
fn address(element: &[u8]) -> Option<IpAddr> {
    let mut node = None;
    for parameter in (SplitFromRight { rest: Some(element), separator: b';' }) {
        let Some(equals) = parameter.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = (trim(&parameter[..equals]), &parameter[equals + 1..]);
        if name.eq_ignore_ascii_case(b"for") && node.replace(trim(value)).is_some() {
            return None; // Two of them contradict each other; RFC 7239 section 4 allows one.
        }
    }
    let mut buffer = [0; NODE_MAX];
    let text = str::from_utf8(unquote(node?, &mut buffer)?).ok()?;
    parse(text).ok()
}

/// Removes quotes and backslashes.
fn unquote<'v>(value: &'v [u8], buffer: &'v mut [u8; NODE_MAX]) -> Option<&'v [u8]> {
    let [b'"', quoted @ .., b'"'] = value else { return Some(value) };
    let mut length = 0;
    let mut bytes = quoted.iter();
    while let Some(&byte) = bytes.next() {
        let byte = if byte == b'\\' { *bytes.next()? } else { byte };
        *buffer.get_mut(length)? = byte;
        length += 1;
    }
    Some(&buffer[..length])
}

/// Splits at separators outside quoted strings, from the right.
struct SplitFromRight<'l> {
    rest: Option<&'l [u8]>,
    separator: u8,
}

impl<'l> Iterator for SplitFromRight<'l> {
    type Item = &'l [u8];

    fn next(&mut self) -> Option<&'l [u8]> {
        let rest = self.rest?;
        let mut is_quoted = false;
        for (place, byte) in rest.iter().enumerate().rev() {
            if *byte == b'"' && !(is_quoted && is_escaped(&rest[..place])) {
                is_quoted = !is_quoted;
            } else if *byte == self.separator && !is_quoted {
                self.rest = Some(&rest[..place]);
                return Some(&rest[place + 1..]);
            }
        }
        self.rest = None;
        Some(rest)
    }
}

/// Whether an odd number of backslashes precedes a byte.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}
