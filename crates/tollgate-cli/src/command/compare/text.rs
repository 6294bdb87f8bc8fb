//! The differences, for a terminal and for programs.

use super::changes::{Changes, VerdictChange};
use crate::command::lab::{ambiguous_note, input_notes};
use crate::command::replay::{input_json, more_keys, percent};
use crate::command::table::{plain, table as format_table};
use serde_json::{Value, json};
use std::fmt::Write;
use tollgate_picture::axis::{format_count, format_grouped};

/// Formats the differences as lines. `names` are those of the policies.
pub(super) fn table(changes: &Changes<'_>, names: &[String; 2], keys: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}; A is {} and refuses {}, B is {} and refuses {}",
        format_count(changes.requests, "request"),
        plain(&names[0]),
        format_grouped(changes.refused[0]),
        plain(&names[1]),
        format_grouped(changes.refused[1]),
    );
    if changes.input.unreadable > 0 {
        let lines = format_count(changes.input.unreadable, "line");
        let _ = writeln!(out, "{lines} could not be read:");
        changes.input.samples.iter().for_each(|sample| {
            let _ = writeln!(out, "  {}", plain(sample));
        });
    }
    if !changes.any() {
        notes(&mut out, changes, names);
        out.push_str("no difference\n");
        return out;
    }
    limits_table(&mut out, changes);
    if changes.tiers.keys().any(|tier| tier != "no tier") {
        let mut rows = vec![["TIER", "NEWLY REFUSED", "NEWLY ADMITTED"].map(String::from).to_vec()];
        for (tier, change) in &changes.tiers {
            let figures = [change.newly_refused, change.newly_admitted].map(format_grouped);
            rows.push(std::iter::once(tier.clone()).chain(figures).collect());
        }
        let _ = write!(out, "\n{}", format_table(&rows));
    }
    let changed = changes.keys();
    let mut rows =
        vec![["MOST AFFECTED", "LIMIT", "REFUSED BY A", "BY B"].map(String::from).to_vec()];
    for key in changed.iter().take(keys) {
        let [a, b] = key.refused.map(format_grouped);
        rows.push(vec![key.key.to_owned(), key.limit.to_owned(), a, b]);
    }
    let _ = write!(out, "\n{}", format_table(&rows));
    if let Some(more) = more_keys(changed.len().saturating_sub(keys) as u64) {
        let _ = writeln!(out, "{more}");
    }
    if changes.keys_lost_track > 0 {
        let count = format_grouped(changes.keys_lost_track);
        let _ =
            writeln!(out, "note: {count} refusals belong to keys that are not counted separately");
    }
    notes(&mut out, changes, names);
    out
}

/// Appends notes about parts of the logs that could not be used or compared.
fn notes(out: &mut String, changes: &Changes<'_>, names: &[String; 2]) {
    for note in all_notes(changes, names) {
        let _ = writeln!(out, "note: {}", plain(&note));
    }
}

fn all_notes(changes: &Changes<'_>, names: &[String; 2]) -> Vec<String> {
    let both = changes.ambiguous_by_both;
    let mut notes: Vec<String> = ambiguous_note(both).into_iter().collect();
    for (count, name) in changes.ambiguous.iter().zip(names) {
        if *count > both {
            notes.push(format!(
                "{} answered with 400 by {name} alone: refused by it, for this comparison",
                format_count(count - both, "ambiguous request")
            ));
        }
    }
    notes.extend(input_notes(&changes.input));
    notes
}

/// Appends the number of requests whose verdict changes, and the limits responsible.
fn limits_table(out: &mut String, changes: &Changes<'_>) {
    let VerdictChange { newly_refused, newly_admitted } = changes.verdicts;
    let total = changes.verdicts.total();
    let _ = writeln!(
        out,
        "{} requests change, {}: B newly refuses {}, and newly admits {}",
        format_grouped(total),
        percent(total, changes.requests),
        format_grouped(newly_refused),
        format_grouped(newly_admitted),
    );
    let heads = [
        "LIMIT",
        "REFUSED BY A",
        "BY B",
        "NEWLY REFUSED",
        "NEWLY ADMITTED",
        "KEYS GAINED",
        "KEYS LOST",
    ];
    let mut rows = vec![heads.map(String::from).to_vec()];
    for (name, change) in changes.limits() {
        let figures = [
            change.refused[0],
            change.refused[1],
            change.verdicts.newly_refused,
            change.verdicts.newly_admitted,
            change.keys_gained,
            change.keys_lost,
        ];
        rows.push(std::iter::once(name.to_owned()).chain(figures.map(format_grouped)).collect());
    }
    let _ = write!(out, "\n{}", format_table(&rows));
}

/// The differences as JSON.
pub(super) fn json(changes: &Changes<'_>, names: &[String; 2], keys: usize) -> Value {
    let change = |change: &VerdictChange| json!({"newly_refused": change.newly_refused, "newly_admitted": change.newly_admitted});
    let limits = changes.limits().into_iter().map(|(name, limit)| {
        json!({
            "name": name,
            "refused_by_a": limit.refused[0],
            "refused_by_b": limit.refused[1],
            "newly_refused": limit.verdicts.newly_refused,
            "newly_admitted": limit.verdicts.newly_admitted,
            "keys_gained": limit.keys_gained,
            "keys_lost": limit.keys_lost,
        })
    });
    let tiers: serde_json::Map<String, Value> =
        changes.tiers.iter().map(|(tier, of)| (tier.clone(), change(of))).collect();
    let keys = changes.keys().into_iter().take(keys).map(|key| {
        json!({"limit": key.limit, "key": key.key, "refused_by_a": key.refused[0], "refused_by_b": key.refused[1]})
    });
    json!({
        "a": names[0],
        "b": names[1],
        "input": input_json(&changes.input),
        "requests": changes.requests,
        "ambiguous_by_a": changes.ambiguous[0],
        "ambiguous_by_b": changes.ambiguous[1],
        "refused_by_a": changes.refused[0],
        "refused_by_b": changes.refused[1],
        "changes": change(&changes.verdicts),
        "limits": limits.collect::<Value>(),
        "tiers": tiers,
        "keys": keys.collect::<Value>(),
        "notes": all_notes(changes, names),
    })
}
