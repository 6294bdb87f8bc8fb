//! TG108: a tier that a client chooses.
//!
//! Checks `tiers.from` and `tiers.by`: a client that chooses its user chooses its tier. The lint
//! does not read the tier file. Not reported: files without gateway and forward-auth, claims of a
//! token, and `by: api_key`, since a client has to know a key to get its tier.

use super::client_invented_source;
use crate::diagnostic::{Code, quoted};
use crate::lint::Findings;
use crate::lint::analysis::view::LintView;

pub(crate) const CODE: &Code = &Code::new(
    "TG108",
    "tier that a client can choose",
    "Every client can give itself the largest quota.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let Some(tiers) = &view.compiled.file.tiers else { return };
    for field in tiers.attributes() {
        let attribute = crate::grammar::attribute(field).unwrap_or_default();
        if &*attribute == "api_key" && tiers.from.is_none() {
            continue;
        }
        let Some(source) = client_invented_source(view, &attribute) else { continue };
        let message = format!("clients choose their tier: it comes from {}", quoted(&source));
        let help = if tiers.from.is_some() {
            "take it from a verified token (`jwt.plan` in `identity`), or look it up with `tiers.file` or `tiers.redis`"
        } else {
            "look tiers up by `api_key`, or by an attribute of a verified token (`jwt.sub` in `identity`)"
        };
        findings.warn(field.at, message, help);
    }
}
