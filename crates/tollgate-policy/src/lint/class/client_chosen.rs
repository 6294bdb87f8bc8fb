//! TG127: an important class that a client can choose.
//!
//! Checks the first class and classes with a reserve: any client can meet a condition on a header
//! (`host` is one), a cookie or a query parameter. Not reported: files without gateway and
//! forward-auth, claims of a token, and `api_key`, which a client has to know. Also not reported:
//! the least important class, and classes without a reserve below the default.

use crate::diagnostic::{Code, quoted};
use crate::lint::Findings;
use crate::lint::analysis::view::LintView;
use crate::lint::client_chosen::client_controlled_source;
use crate::match_spec::Condition;

pub(crate) const CODE: &Code = &Code::new(
    "TG127",
    "important class that a client can choose",
    "Every client can say that its requests are the most important, and is never shed.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let (Some(shed), Some(written)) = (&view.compiled.shed, &view.compiled.file.classes) else {
        return;
    };
    let reserved = |index: usize| {
        let fleet = shed.fleet.as_ref();
        fleet.and_then(|fleet| fleet.reserved.get(index)).is_some_and(|slots| *slots > 0)
    };
    let last = shed.classes.len().saturating_sub(1);
    for (index, (class, entry)) in shed.classes.iter().zip(written.iter()).enumerate() {
        let is_important = index < last && (index == 0 || reserved(index));
        let Some(spec) = class.match_spec.as_ref().filter(|_| is_important) else { continue };
        let chosen = |condition: &Condition| {
            let attribute = &condition.attribute;
            let is_known = attribute == "api_key";
            client_controlled_source(view, attribute).filter(|_| !is_known)
        };
        let conditions = spec.conditions.iter().chain(spec.not.iter().flatten());
        let Some(source) = conditions.filter_map(chosen).next() else { continue };
        let at = entry.r#match.as_ref().map_or(entry.at, |written| written.name_at);
        let (name, source) = (quoted(&class.name), quoted(&source));
        let message = format!("clients put their requests into {name} by choosing {source}");
        let help = "match what clients cannot choose: a path, or a claim of a verified token (`jwt.plan` in `identity`); or let a trusted proxy name classes with `lower_by`";
        findings.warn(at, message, help);
    }
}
