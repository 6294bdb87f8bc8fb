//! TG108: a tier that a client picks.
//!
//! Looks at `tiers.from`, and at `tiers.redis.by`: who chooses the user chooses the tier. The attribute in a tiers file
//! is not known here. Quiet when neither the gateway nor forward-auth listens, and for claims of a token.

use super::chosen_from;
use crate::diagnostic::Code;
use crate::lint::{Findings, view::View};
use crate::suggest::quoted;

pub(in crate::lint) const CODE: &Code = &Code::new(
    "TG108",
    "tier that a client can choose",
    "Every client can give itself the largest quota.",
);

pub(in crate::lint) fn check(view: &View<'_>, findings: &mut Findings<'_>) {
    let Some(tiers) = &view.compiled.file.tiers else { return };
    let by = tiers.redis.as_ref().and_then(|redis| redis.by.as_ref());
    for field in [&tiers.from].into_iter().flatten().chain(by) {
        let attribute = crate::grammar::attribute(field).unwrap_or_default();
        let Some(source) = chosen_from(view, &attribute) else { continue };
        let message = format!(
            "clients choose their tier themselves: it is read from {} as sent",
            quoted(&source)
        );
        let help = "take it from a verified token (`jwt.plan` in `identity`), or look it up with `tiers.file` or `tiers.redis`";
        findings.warn(field.at, message, help);
    }
}
