//! The summary of a suggestion, as text and as JSON.

use super::policy::Suggestion;
use super::rates::{Distribution, HOUR, MINUTE, SECOND};
use crate::command::replay::input_json;
use crate::command::table::table;
use serde_json::{Value, json};
use std::fmt::Write;
use tollgate_picture::axis::format_grouped;

/// The most endpoints shown.
const ENDPOINTS_SHOWN: usize = 15;
/// Bars of eight heights.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Describes the data behind the suggestion.
pub(super) fn summary(suggestion: &Suggestion) -> String {
    let survey = &suggestion.survey;
    let mut out = String::new();
    let clients = suggestion.rates.distribution(MINUTE);
    let _ = writeln!(
        out,
        "\n{} requests of {} {}; at its busiest each asks for, by window:",
        format_grouped(survey.requests),
        format_grouped(clients.len() as u64),
        suggestion.key.plural()
    );
    let mut rows = vec![heads(&["WINDOW", "P50", "P90", "P99", "P99.9", "MAX"])];
    for (name, window) in [("second", SECOND), ("minute", MINUTE), ("hour", HOUR)] {
        let peaks = suggestion.rates.distribution(window);
        rows.push(std::iter::once(name.to_owned()).chain(figures(&peaks)).collect());
    }
    out.push_str(&table(&rows));
    let _ = writeln!(out, "\nby endpoint, per minute:");
    let head =
        ["ENDPOINT", "REQUESTS", "KEYS", "P50", "P90", "P99", "P99.9", "MAX", "MEAN MS", "UNITS"];
    let mut rows = vec![heads(&head)];
    for number in busiest(suggestion).into_iter().take(ENDPOINTS_SHOWN) {
        let (usage, (method, path)) = (&survey.usage[number], survey.endpoints.get(number));
        let peaks = usage.rates.distribution(MINUTE);
        let mean = usage.mean_us().map_or_else(|| "-".into(), |us| format_grouped(us / 1_000));
        let mut row = vec![format!("{method} {path}").trim().to_owned()];
        row.push(format_grouped(usage.requests));
        row.push(format_grouped(peaks.len() as u64));
        row.extend(figures(&peaks));
        row.extend([mean, usage.units.to_string()]);
        rows.push(row);
    }
    out.push_str(&table(&rows));
    let more = survey.endpoints.len().saturating_sub(ENDPOINTS_SHOWN);
    if more > 0 {
        let _ = writeln!(out, "and {more} more endpoints");
    }
    let _ = writeln!(out, "\nby hour of the day, UTC: {}", day(&survey.by_hour));
    for caveat in &suggestion.caveats {
        let _ = writeln!(out, "note: {caveat}");
    }
    out
}

/// The suggestion as JSON.
pub(super) fn json(suggestion: &Suggestion, policy: &str) -> Value {
    let survey = &suggestion.survey;
    let limits = suggestion.limits.iter().map(|limit| {
        json!({
            "name": limit.name,
            "key": [limit.key.name()],
            "algorithm": limit.advice.algorithm,
            "rate": format!("{}/min", limit.advice.rate),
            "burst": limit.advice.burst,
            "reasons": limit.advice.reasons,
            "replay": limit.proof,
        })
    });
    let endpoints = busiest(suggestion).into_iter().map(|number| {
        let (usage, (method, path)) = (&survey.usage[number], survey.endpoints.get(number));
        json!({
            "method": method,
            "path": path,
            "requests": usage.requests,
            "denied": usage.denied,
            "mean_ms": usage.mean_us().map(|us| us / 1_000),
            "units": usage.units,
            "per_minute": distribution(&usage.rates.distribution(MINUTE)),
        })
    });
    json!({
        "policy": policy,
        "input": input_json(&suggestion.input),
        "caveats": suggestion.caveats,
        "key": suggestion.key.name(),
        "rates": {
            "second": distribution(&suggestion.rates.distribution(SECOND)),
            "minute": distribution(&suggestion.rates.distribution(MINUTE)),
            "hour": distribution(&suggestion.rates.distribution(HOUR)),
        },
        "by_hour": survey.by_hour,
        "limits": limits.collect::<Value>(),
        "endpoints": endpoints.collect::<Value>(),
    })
}

fn distribution(peaks: &Distribution) -> Value {
    json!({
        "keys": peaks.len(),
        "p50": peaks.at(500),
        "p90": peaks.at(900),
        "p99": peaks.at(990),
        "p999": peaks.at(999),
        "max": peaks.max(),
    })
}

fn figures(peaks: &Distribution) -> [String; 5] {
    [peaks.at(500), peaks.at(900), peaks.at(990), peaks.at(999), peaks.max()].map(format_grouped)
}

fn heads(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The endpoints, the most requested first.
fn busiest(suggestion: &Suggestion) -> Vec<usize> {
    let usage = &suggestion.survey.usage;
    let mut numbers: Vec<usize> = (0..usage.len()).collect();
    numbers.sort_by_key(|number| (std::cmp::Reverse(usage[*number].requests), *number));
    numbers
}

/// Draws the requests by hour of the day, and names the busiest hour.
fn day(by_hour: &[u64; 24]) -> String {
    let max = by_hour.iter().copied().max().unwrap_or(0).max(1);
    let bars: String = by_hour
        .iter()
        .map(|count| if *count == 0 { ' ' } else { BARS[(count * 7 / max) as usize] })
        .collect();
    let busiest = by_hour.iter().position(|count| *count == max).unwrap_or(0);
    let share = 100 * max / by_hour.iter().sum::<u64>().max(1);
    format!("|{bars}| the most at {busiest:02}:00, {share} %")
}
