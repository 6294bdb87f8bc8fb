//! Formats an explanation as text.

use crate::command::admin::{list, value_text as text};
use crate::command::table::{plain, table};
use serde_json::Value;
use std::time::Duration;
use tollgate_picture::axis::format_offset;

pub(super) fn explanation(answer: &Value) -> String {
    let mut out = summary(answer);
    if let Some(source) = answer["tier"]["source"].as_str() {
        let name = answer["tier"]["name"].as_str().unwrap_or("none");
        let by = answer["tier"]["by"].as_str().map(|by| format!(" {by}")).unwrap_or_default();
        let origin = match source {
            "none" => String::new(),
            "default" => ", by default".to_owned(),
            "given" => ", as given".to_owned(),
            source => format!(", from: {source}{by}"),
        };
        out.push_str(&plain(&format!("tier: {name}{origin}")));
        out.push('\n');
    }
    if let Some(class) = answer["class"].as_str() {
        let shed = answer["shed"].as_str().map(|why| format!(", shed by: {why}"));
        out.push_str(&plain(&format!("class: {class}{}", shed.unwrap_or_default())));
        out.push('\n');
    }
    let mut rows = vec![["LIMIT", "ANSWER", "KEY", "RATE", "WHY"].map(str::to_owned).to_vec()];
    for limit in list(&answer["limits"]) {
        rows.extend(limit_rows(limit));
    }
    if rows.len() == 1 {
        return out + "\nThe policy has no limits.\n";
    }
    out.push_str(&format!("\n{}", table(&rows)));
    if answer["logged"].is_object() {
        out.push_str(&logged(&answer["logged"]));
    }
    out
}

/// Formats a wait, rounded up: `4.5 s`, `47 min 4 s`.
fn wait_text(seconds: f64) -> String {
    let us = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).as_micros();
    let us = u64::try_from(us).unwrap_or(u64::MAX);
    let unit_us = if us < 60_000_000 { 100_000 } else { 1_000_000 };
    format_offset(us.div_ceil(unit_us).saturating_mul(unit_us))
}

/// The result in one line.
fn summary(answer: &Value) -> String {
    let (time, source) = (text(&answer["time"]), text(&answer["source"]));
    if answer["allowed"] == true {
        let delay = answer["delay"].as_f64().filter(|delay| *delay > 0.0);
        let delay = delay.map(|_| format!(" after {} s", answer["delay"])).unwrap_or_default();
        return plain(&format!("admitted{delay} at {time}, by: {source}")) + "\n";
    }
    let wait = match &answer["retry_after"] {
        Value::Null => "no wait helps".to_owned(),
        wait => format!("retry after {}", wait_text(wait.as_f64().unwrap_or(0.0))),
    };
    plain(&format!("refused with {} at {time}, by: {source}; {wait}", answer["status"])) + "\n"
}

fn limit_rows(limit: &Value) -> Vec<Vec<String>> {
    let name = text(&limit["name"]);
    let decisions = list(&limit["decisions"]);
    if decisions.is_empty() {
        let cells = ["does not apply", "", "", &text(&limit["why_not"])].map(str::to_owned);
        return vec![[name].into_iter().chain(cells).collect()];
    }
    let row = |decision: &Value| {
        let answer = match (decision["allowed"] == true, limit["mode"] == "shadow") {
            (true, _) => "admits",
            (false, true) => "would refuse (shadow)",
            (false, false) => "refuses",
        };
        let tier = decision["tier"].as_str().map(|tier| format!(" (tier {tier})"));
        let rate = format!(
            "{} {}{}",
            text(&decision["rate"]),
            text(&decision["algorithm"]),
            tier.unwrap_or_default()
        );
        vec![name.clone(), answer.to_owned(), key(decision), rate, text(&decision["reason"])]
    };
    let candidate = |decision: &Value| {
        let candidate = decision["candidate"].as_object()?;
        let is_admitted = candidate["allowed"] == true;
        let answer = if is_admitted { "would admit" } else { "would refuse" };
        let rate = format!("{} {}", text(&candidate["rate"]), text(&candidate["algorithm"]));
        let (used, limit) = (text(&candidate["used"]), text(&candidate["limit"]));
        let counts = format!("{used} of {limit} used: {} left", text(&candidate["remaining"]));
        let cells = ["  its candidate", answer, "", &rate, &counts].map(str::to_owned);
        Some(cells.to_vec())
    };
    decisions.iter().flat_map(|one| std::iter::once(row(one)).chain(candidate(one))).collect()
}

fn key(decision: &Value) -> String {
    let part = |part: &Value| {
        let value = part["value"].as_str().unwrap_or("(missing)");
        format!("{}={value} ({})", text(&part["attribute"]), text(&part["from"]))
    };
    match list(&decision["key"]) {
        [] => "all requests".to_owned(),
        parts => parts.iter().map(part).collect::<Vec<_>>().join(", "),
    }
}

/// Formats the line of the decision log that was explained.
fn logged(line: &Value) -> String {
    let heading = ["LOGGED", "ANSWER", "REMAINING", "SOURCE"].map(str::to_owned).to_vec();
    let row = |limit: &Value| {
        let answer = if limit["allowed"] == true { "admitted" } else { "refused" };
        let left = format!("{} of {}", text(&limit["remaining"]), text(&limit["limit"]));
        vec![text(&limit["name"]), answer.to_owned(), left, text(&limit["source"])]
    };
    let rows: Vec<Vec<String>> =
        std::iter::once(heading).chain(list(&line["limits"]).iter().map(row)).collect();
    let note = "The line holds keys only: conditions on other attributes are tested as if they were missing.";
    format!("\n{}\n{note}\n", table(&rows))
}
