//! Formats responses of the admin API as text.

use super::client::AdminResponse;
use crate::command::table::{plain, table};
use serde_json::Value;

/// Formats a value as text; null is empty.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Joins the lines of a text, such as an error and its help.
fn one_line(value: &Value) -> String {
    text(value).lines().collect::<Vec<_>>().join("; ")
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], |items| items)
}

/// Returns members of an object as cells of a row.
fn members(object: &Value, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| text(&object[*name])).collect()
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

pub(super) fn status(answer: &Value) -> String {
    let ready = if answer["ready"] == true { "yes" } else { "no" };
    let mut rows = vec![row(&["ready", ready])];
    if let Some(detail) = answer["detail"].as_object() {
        rows.extend(detail.iter().map(|(subject, why)| vec![subject.clone(), one_line(why)]));
    }
    table(&rows)
}

pub(super) fn policy(answer: &Value) -> String {
    let mut about = vec![row(&["generation", &text(&answer["generation"])])];
    let file = answer["file"].as_str().unwrap_or("built-in");
    about.push(row(&["file", file]));
    if let Some(last) = answer["last_reload"].as_object() {
        let error = last.get("error").map(|why| format!(": {}", one_line(why))).unwrap_or_default();
        let (time, result) = (text(&answer["last_reload"]["time"]), text(&last["result"]));
        about.push(row(&["last reload", &format!("{time} {result}{error}")]));
    }
    let mut rows = vec![row(&["LIMIT", "MODE", "KEY", "ALGORITHM", "RATE", "CAPACITY", "TIERS"])];
    for limit in list(&answer["limits"]) {
        let tiers: Vec<String> = limit["tiers"].as_object().map_or_else(Vec::new, |tiers| {
            tiers.iter().map(|(tier, of)| format!("{tier} {}", text(&of["rate"]))).collect()
        });
        let mut cells = members(limit, &["name", "mode", "key", "algorithm", "rate", "limit"]);
        if limit["overridden"] == true {
            cells[1].push_str(&format!(" (file: {})", text(&limit["configured"])));
        }
        cells[2] = key_names(&limit["key"]);
        cells.push(tiers.join(", "));
        rows.push(cells);
    }
    format!("{}\n{}{}", table(&about), table(&rows), overrides(&answer["overrides"]))
}

/// Formats the overrides, the effective ones last.
fn overrides(overrides: &Value) -> String {
    let mut rows = vec![row(&["OVERRIDE", "MODE", "NODES", "SET", "BY", "TOKEN", ""])];
    for one in list(overrides) {
        let mut cells = members(one, &["name", "mode", "scope", "at"]);
        cells[2] = nodes(&one["scope"]).to_owned();
        cells.extend(members(&one["who"], &["peer", "token"]));
        cells.push(if one["in_effect"] == true { "" } else { "without effect" }.to_owned());
        rows.push(cells);
    }
    if rows.len() == 1 { String::new() } else { format!("\n{}", table(&rows)) }
}

fn nodes(scope: &Value) -> &'static str {
    if scope == "fleet" { "all nodes" } else { "this node" }
}

/// Formats the attributes of a key, or of several keys.
fn key_names(key: &Value) -> String {
    let names = |key: &Value, between: &str| {
        list(key).iter().map(text).collect::<Vec<String>>().join(between)
    };
    match key.get("first_of") {
        None => names(key, " "),
        Some(keys) => {
            let keys: Vec<String> = list(keys).iter().map(|key| names(key, "+")).collect();
            format!("first of {}", keys.join(", "))
        }
    }
}

pub(super) fn inspected(answer: &Value) -> String {
    let limits = list(&answer["limits"]);
    if limits.is_empty() {
        return "no limit has a key of these attributes\n".to_owned();
    }
    let heading =
        "LIMIT|MODE|KEY|ALGORITHM|RATE|CAPACITY|USED|REMAINING|RESET IN|KEEPS|BLOCKED UNTIL";
    let mut rows = vec![row(&heading.split('|').collect::<Vec<_>>())];
    for limit in limits {
        let key: Vec<String> = limit["key"].as_object().map_or_else(Vec::new, |key| {
            key.iter().map(|(name, value)| format!("{name}={}", text(value))).collect()
        });
        let mut cells = members(limit, &["name", "mode"]);
        cells.push(key.join(" "));
        cells.extend(members(limit, &["algorithm", "rate", "limit", "used", "remaining"]));
        cells.push(with_unit(&limit["reset_after"], "s"));
        cells.push(keeps(&limit["keeps"]));
        cells.push(text(&limit["blocked_until"]));
        rows.push(cells);
    }
    let ledgers = limits.iter().filter(|limit| !limit["ledger"].is_null()).map(ledger);
    tier(&answer["tier"]) + &table(&rows) + &ledgers.collect::<String>()
}

fn with_unit(value: &Value, unit: &str) -> String {
    match value {
        Value::Null => String::new(),
        value => format!("{} {unit}", text(value)),
    }
}

/// Formats the part of a key's state that survives a change of the limit's parameters.
fn keeps(keeps: &Value) -> String {
    match &keeps["owed"] {
        Value::Null => {
            with_unit(&keeps["units"], if keeps["units"] == 1 { "unit" } else { "units" })
        }
        owed => with_unit(owed, "s owed"),
    }
}

/// Formats the key's tier and its source.
fn tier(tier: &Value) -> String {
    if tier.is_null() {
        return String::new();
    }
    let name =
        tier["name"].as_str().map_or_else(|| "no tier".to_owned(), |name| format!("tier {name}"));
    let by = tier["by"].as_str().map(|by| format!(", by {by}")).unwrap_or_default();
    let unknown = tier["unknown"].as_str();
    let unknown = unknown.map(|tier| format!("; no limit has the tier {tier}")).unwrap_or_default();
    plain(&format!("{name}, from: {}{by}{unknown}", text(&tier["source"]))) + "\n\n"
}

/// Formats the processes that hold units of a leased limit.
fn ledger(limit: &Value) -> String {
    let ledger = &limit["ledger"];
    let name = plain(&text(&limit["name"]));
    let mut out = format!("\nleases of {name}, ledger {}", text(&ledger["ledger"]));
    if ledger["quiet_for"].as_f64().is_some_and(|quiet| quiet > 0.0) {
        out.push_str(&format!(", grace period for {} s", text(&ledger["quiet_for"])));
    }
    let heading = ["PROCESS", "HOLDING", "GRANTED", "RETURNED", "LAST HEARD", ""];
    let mut rows = vec![row(&heading)];
    for one in list(&ledger["holdings"]) {
        let mut cells = members(one, &["process", "number", "granted", "returned", "heard"]);
        cells.push(if one["this_node"] == true { "this node" } else { "" }.to_owned());
        rows.push(cells);
    }
    format!("{out}\n{}", table(&rows))
}

pub(super) fn changed(what: &str, answer: &Value) -> String {
    let names: Vec<String> = list(&answer["limits"]).iter().map(text).collect();
    let until = match &answer["blocked_until"] {
        Value::Null => String::new(),
        until => format!(" until {}", text(until)),
    };
    format!("{what} on {}{until}\n", plain(&names.join(", ")))
}

pub(super) fn mode(answer: &Value) -> String {
    let name = plain(&text(&answer["name"]));
    let (before, after) = (text(&answer["before"]), text(&answer["after"]));
    let until = match (&answer["overridden"], &answer["cleared"]) {
        (Value::Bool(true), _) => "until it is cleared",
        (_, Value::Bool(false)) => "no override was in force",
        _ => "override cleared",
    };
    let note = match &answer["note"] {
        Value::Null => String::new(),
        note => format!("note: {}\n", plain(&text(note))),
    };
    format!("{name} on {}: {before} -> {after}, {until}\n{note}", nodes(&answer["scope"]))
}

pub(super) fn reloaded(answer: &Value) -> String {
    format!("reloaded; generation {} is in force\n", text(&answer["generation"]))
}

/// Formats the error and its fix.
pub(crate) fn problem(answer: &AdminResponse) -> String {
    let problem = answer.json();
    let field = problem["field"].as_str().filter(|field| !field.is_empty());
    let unknown =
        || format!("answered {} without a reason; is this a tollgate's admin API?", answer.status);
    let detail = problem["detail"].as_str().map_or_else(unknown, str::to_owned);
    let detail: Vec<String> = detail.lines().map(plain).collect();
    let mut out = match (answer.status, field) {
        (400 | 404, Some(field)) => format!("tollgate: {}: {}\n", plain(field), detail.join("\n")),
        _ => format!("tollgate: {}\n", detail.join("\n")),
    };
    if answer.status == 401 {
        out.push_str("help: put the token of `admin.token` into TOLLGATE_ADMIN_TOKEN, or name a file with --token-file\n");
    }
    out
}

#[cfg(test)]
mod tests;
