//! Lints about values that a client chooses: TG107, TG108 and TG111.
//!
//! Clients choose headers, cookies and query parameters, used directly or through `identity`.
//! Claims of a token are verified. Any other attribute comes from the caller of the check API, who
//! is trusted.

pub(super) mod cost;
pub(super) mod key;
pub(super) mod tier;

use super::analysis::view::LintView;
use crate::settings::AttributeSource;

/// Returns the part of the request that the attribute is read from, if the client alone controls
/// it.
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
