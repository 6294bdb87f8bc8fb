//! Heads on their way to a server.

use super::remove_hop_by_hop;
use hyper::{
    HeaderMap,
    header::{CONNECTION, HeaderName, HeaderValue},
};
use std::{cell::Cell, fmt::Write as _};

/// A long `Connection` costs one lookup for each of its names. Before, each name was compared
/// with all others.
#[test]
fn a_long_connection_header_costs_one_lookup_for_each_name() {
    let mut list = String::from("x-own, x-read");
    (0..3_000).for_each(|n| write!(list, ", n{n}").unwrap());
    (0..3_000).for_each(|_| list.push_str(", x-own"));
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION, HeaderValue::try_from(list).unwrap());
    for name in ["x-own", "x-read", "x-other", "keep-alive"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
    }
    let asked = Cell::new(0);
    remove_hop_by_hop(&mut headers, &|name| {
        asked.set(asked.get() + 1);
        name == "x-read"
    });
    assert_eq!(asked.get(), 2, "only names that the request has are compared");
    let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["x-other", "x-read"]);
}
