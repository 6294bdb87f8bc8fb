//! Headers whose value is a plain list of addresses, such as `X-Forwarded-For`.

use std::net::IpAddr;

use super::parse;

/// Returns the items of one line from the right; `None` for an item that is not an address.
pub(super) fn from_right(line: &[u8]) -> impl Iterator<Item = Option<IpAddr>> {
    line.rsplit(|byte| *byte == b',')
        .map(trim)
        .filter(|item| !item.is_empty())
        .map(|item| str::from_utf8(item).ok().and_then(|text| parse(text).ok()))
}

/// Trims the optional white space of HTTP.
pub(super) fn trim(mut item: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = item {
        item = rest;
    }
    item
}
