//! `cost`.

use crate::compile::fields::{exactly_one, missing, number, require_items};
use crate::diagnostic::{Report, codes, quoted};
use crate::grammar;
use crate::limit::{CostRule, ResponseCost, WeightedMatch};
use crate::match_spec::{Condition, MatchSpec};
use crate::raw::{self, At, Conditions, CostEntry, CostForm, Field, Match};

/// The largest cost that a request may name, where the file sets no `max`.
const COST_MAX: u64 = u32::MAX as u64;

pub(super) fn cost(field: &Field<raw::Cost>, report: &mut Report) -> CostRule {
    let Some(field) = field else { return CostRule::Fixed(1) };
    let form = match &field.value {
        raw::Cost::Fixed(cost) => return CostRule::Fixed(*cost),
        raw::Cost::Form(form) => form,
        raw::Cost::ByMatch(entries) => {
            require_items(entries, "cost", field.at, report);
            return CostRule::ByMatch(
                entries.iter().map(|entry| weighted(entry, report)).collect(),
            );
        }
    };
    if !form.unreadable.is_empty() {
        return CostRule::Fixed(1);
    }
    let from_response = form.estimate.is_some() || form.response.is_some();
    let from_request = form.header.is_some() || form.default.is_some() || form.max.is_some();
    let given = [("header", from_request), ("estimate", from_response)];
    if !exactly_one(&given, field.at, report) {
        return CostRule::Fixed(1);
    }
    if from_response { estimate(field, form, report) } else { header(field, form, report) }
}

fn weighted(entry: &At<CostEntry>, report: &mut Report) -> WeightedMatch {
    if entry.units.is_none() {
        missing("units", (entry.at, &entry.unreadable), report);
    }
    let units = number(&entry.units, 1, (0, COST_MAX), report);
    WeightedMatch::new(match_spec(&entry.r#match, report), units)
}

fn header(field: &At<raw::Cost>, form: &CostForm, report: &mut Report) -> CostRule {
    let max = number(&form.max, COST_MAX, (0, u64::MAX), report);
    let default = number(&form.default, 1.min(max), (0, u64::MAX), report);
    if let Some(written) = &form.default
        && default > max
    {
        let range = format!("0 to {max}, which is `max`");
        crate::compile::fields::out_of_range(written.at, &default.to_string(), &range, report);
    }
    let Some(name) = &form.header else {
        missing("header", (field.at, &form.unreadable), report);
        return CostRule::Fixed(1);
    };
    match report.accept(name.at, grammar::header_name(name)) {
        Some(name) => CostRule::Attribute { name: format!("header.{name}").into(), default, max },
        None => CostRule::Fixed(1),
    }
}

/// Compiles an estimated cost. Without `estimate`, 1 unit is reserved.
fn estimate(field: &At<raw::Cost>, form: &CostForm, report: &mut Report) -> CostRule {
    let estimate = form.estimate.as_ref().map_or(1, |estimate| estimate.value);
    let Some(response) = &form.response else {
        missing("response", (field.at, &form.unreadable), report);
        return CostRule::Fixed(1);
    };
    if !response.unreadable.is_empty() {
        return CostRule::Fixed(1);
    }
    let given = [("json", response.json.is_some()), ("header", response.header.is_some())];
    if !exactly_one(&given, response.at, report) {
        return CostRule::Fixed(1);
    }
    let found = if let Some(path) = &response.json {
        if path.split('.').any(str::is_empty) {
            let message = format!("{} is not a path in JSON", quoted(path));
            let help = "write the names of members with dots between, such as `usage.total_tokens`";
            report.error(codes::BAD_ATTRIBUTE, path.at, message, help);
        }
        Some(ResponseCost::Json(path.0.as_str().into()))
    } else {
        response.header.as_ref().and_then(|name| {
            report.accept(name.at, grammar::header_name(name)).map(ResponseCost::Header)
        })
    };
    found.map_or(CostRule::Fixed(1), |response| CostRule::Estimate { estimate, response })
}

pub(in crate::compile) fn match_spec(field: &Field<Match>, report: &mut Report) -> MatchSpec {
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
        let patterns = crate::compile::fields::map_items(&patterns.0, report, |text| {
            grammar::pattern(&attribute, text)
        });
        list.push(Condition { attribute: attribute.into(), patterns });
    }
    list
}
