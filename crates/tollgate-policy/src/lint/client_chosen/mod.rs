//! Lints about values that a client chooses: TG107, TG108 and TG111.
//!
//! Clients choose headers, cookies and query parameters, used directly or through `identity`. They
//! choose `host`, which is a header, and may invent a `method`. Claims of a token are verified. Any
//! other attribute comes from the caller of the check API, who is trusted.

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
    if is_sent(attribute) {
        return Some(attribute.to_owned());
    }
    match view.identity(attribute)? {
        AttributeSource::Header(name) => Some(format!("header.{name}")),
        AttributeSource::Cookie(name) => Some(format!("cookie.{name}")),
        AttributeSource::Query(name) => Some(format!("query.{name}")),
        AttributeSource::Jwt(_) => None,
    }
}

/// [`client_controlled_source`], and `method`, which may be any token. A condition on a method
/// names one method, so only keys and tiers count it as chosen.
fn client_invented_source(view: &LintView<'_>, attribute: &str) -> Option<String> {
    let is_method = attribute == "method" && view.reads_requests();
    is_method.then(|| attribute.to_owned()).or_else(|| client_controlled_source(view, attribute))
}

/// Whether the attribute is a part of the request that a client may send or leave out. A request
/// of HTTP/1.0 needs no `Host`.
pub(super) fn is_sent(attribute: &str) -> bool {
    attribute == "host"
        || ["header.", "cookie.", "query."].iter().any(|part| attribute.starts_with(part))
}
