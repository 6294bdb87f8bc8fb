//! TG126: a class that no request belongs to.
//!
//! Reported: a class after one that matches all its requests, a class whose conditions exclude each
//! other, and a default class if another class matches everything. Not reported: classes below the
//! first if `lower_by` can name them.

use crate::diagnostic::{Code, quoted};
use crate::lint::Findings;
use crate::lint::analysis::cover::ComparableMatch;
use crate::lint::analysis::view::LintView;
use crate::match_spec::MatchSpec;

pub(crate) const CODE: &Code = &Code::new(
    "TG126",
    "class that nothing matches",
    "The first class that matches counts, so this class never gets a request.",
);

pub(crate) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let (Some(shed), Some(written)) = (&view.compiled.shed, &view.compiled.file.classes) else {
        return;
    };
    let everything = MatchSpec::default();
    let shapes: Vec<_> = shed
        .classes
        .iter()
        .map(|class| class.match_spec.as_ref().map(ComparableMatch::new))
        .collect();
    for (index, (class, entry)) in shed.classes.iter().zip(written.iter()).enumerate() {
        if index > 0 && shed.lower_by.is_some() {
            continue;
        }
        let is_default = index == shed.default_class;
        let own = match &class.match_spec {
            Some(spec) if !is_default => ComparableMatch::new(spec),
            // The default class takes requests that no class matches, whether listed before or
            // after it.
            _ => ComparableMatch::new(&everything),
        };
        let earlier = if is_default { &shapes[..] } else { &shapes[..index] };
        let covering = earlier.iter().enumerate().find(|(other, shape)| {
            *other != index && shape.as_ref().is_some_and(|shape| shape.covers(&own))
        });
        let name = quoted(&class.name);
        let at = entry.name.as_ref().map_or(entry.at, |name| name.at);
        if let Some((other, _)) = covering {
            let by = quoted(&shed.classes[other].name);
            let message = format!("no request belongs to {name}: {by} matches all of them");
            let help = if is_default {
                format!("make the match of {by} narrower")
            } else {
                format!("move {name} before {by}, or make the match of {by} narrower")
            };
            findings.warn(at, message, help);
        } else if !is_default && own.is_impossible() {
            let message =
                format!("no request belongs to {name}: its conditions exclude each other");
            findings.warn(at, message, "remove one of the conditions");
        }
    }
}
