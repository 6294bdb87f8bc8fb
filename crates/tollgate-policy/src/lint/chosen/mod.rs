//! Attributes that a client chooses itself: TG107, TG108 and part of TG111.
//!
//! Header fields, cookies and query parameters count as the client sends them, directly or through `identity`; claims of
//! a token are verified. An attribute that is neither comes from the caller of the check API, who is trusted.

pub(super) mod key;
pub(super) mod tier;

use super::view::View;
use crate::settings::Source;

/// The part of the request that the attribute is read from, when the client alone decides what it says.
pub(super) fn chosen_from(view: &View<'_>, attribute: &str) -> Option<String> {
    if !view.reads_requests() {
        return None;
    }
    let is_sent = ["header.", "cookie.", "query."].iter().any(|part| attribute.starts_with(part));
    if is_sent {
        return Some(attribute.to_owned());
    }
    match view.identity(attribute)? {
        Source::Header(name) => Some(format!("header.{name}")),
        Source::Cookie(name) => Some(format!("cookie.{name}")),
        Source::Query(name) => Some(format!("query.{name}")),
        Source::Jwt(_) => None,
    }
}
