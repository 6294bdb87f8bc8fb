//! Lints about values that a client picks: TG107, TG108 and TG111.
//!
//! Header fields, cookies and query parameters count as the client sends them, directly or through
//! `identity`; claims of a token are verified. An attribute that is neither comes from the caller
//! of the check API, who is trusted.

pub(super) mod cost;
pub(super) mod key;
pub(super) mod tier;

use super::analysis::view::LintView;
use crate::settings::AttributeSource;

/// The part of the request that the attribute is read from, when the client alone decides what it
/// says.
pub(super) fn client_controlled_source(view: &LintView<'_>, attribute: &str) -> Option<String> {
    if !view.reads_requests() {
        return None;
    }
    let is_sent = ["header.", "cookie.", "query."].iter().any(|part| attribute.starts_with(part));
    if is_sent {
        return Some(attribute.to_owned());
    }
    match view.identity(attribute)? {
        AttributeSource::Header(name) => Some(format!("header.{name}")),
        AttributeSource::Cookie(name) => Some(format!("cookie.{name}")),
        AttributeSource::Query(name) => Some(format!("query.{name}")),
        AttributeSource::Jwt(_) => None,
    }
}
