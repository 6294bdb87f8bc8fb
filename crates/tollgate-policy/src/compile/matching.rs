//! `match`.

use super::fields::require_items;
use crate::diagnostic::Report;
use crate::grammar;
use crate::match_spec::{Condition, MatchSpec};
use crate::raw::{Conditions, Field, Match};

pub(super) fn match_spec(field: &Field<Match>, report: &mut Report) -> MatchSpec {
    let Some(field) = field else { return MatchSpec::default() };
    let conditions = self::conditions(&field.conditions, report);
    let mut not = Vec::new();
    for exclusion in field.not.iter().flat_map(|not| &not.0) {
        // An exclusion without conditions would exclude everything.
        require_items(&exclusion.0, "not", exclusion.at, report);
        not.push(self::conditions(exclusion, report));
    }
    MatchSpec { conditions, not }
}

fn conditions(conditions: &Conditions, report: &mut Report) -> Vec<Condition> {
    let mut list = Vec::new();
    for (name, patterns) in &conditions.0 {
        let Some(attribute) = report.accept(name.at, grammar::attribute(name)) else { continue };
        require_items(&patterns.0, name, patterns.at, report);
        let patterns = super::fields::map_items(&patterns.0, report, |text| {
            grammar::pattern(&attribute, text)
        });
        list.push(Condition { attribute: attribute.into(), patterns });
    }
    list
}
