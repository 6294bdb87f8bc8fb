//! TG129: a class that clients choose through forward-auth.
//!
//! A proxy that uses forward-auth is trusted, so its `lower_by` may raise a class. But it forwards
//! the client's headers unchanged. Reported: a header, a cookie or a query parameter while `http`
//! listens and `trusted_proxies` has entries. Not reported: claims of a token.

use crate::diagnostic::{Code, quoted};
use crate::lint::Findings;
use crate::lint::analysis::view::LintView;
use crate::lint::client_chosen::client_controlled_source;
use crate::settings::Front;

pub(crate) const CODE: &Code = &Code::new(
    "TG129",
    "class that clients raise through forward-auth",
    "A proxy that asks by forward-auth is trusted and passes the client's headers on, so any client can name the most important class.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let file = &view.compiled.file;
    let is_trusting = file.trusted_proxies.as_ref().is_some_and(|list| !list.value.is_empty());
    if !is_trusting || !view.listens(Front::Http) {
        return;
    }
    let Some(lower_by) = file.shed.as_ref().and_then(|shed| shed.value.lower_by.as_ref()) else {
        return;
    };
    let Some(source) = client_controlled_source(view, &lower_by.value) else { return };
    let message = format!("clients raise their class through forward-auth by {}", quoted(&source));
    let help = "let the proxy remove or overwrite it before it asks, then allow TG129; or name classes by a claim of a verified token";
    findings.warn(lower_by.at, message, help);
}
