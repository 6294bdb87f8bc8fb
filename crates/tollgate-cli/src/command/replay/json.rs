//! The report as JSON.

use super::report::{KeyReport, LimitReport, ReplayReport};
use crate::command::lab::plot::Count;
use serde_json::{Value, json};
use tollgate_logs::InputStats;

/// The report as JSON. Times are seconds since 1970.
pub(crate) fn value(report: &ReplayReport) -> Value {
    let series = &report.series;
    let counts = |counts: &[Count]| -> Value {
        counts.iter().map(|count| json!([count.admitted, count.refused])).collect()
    };
    let limits: Vec<Value> = report
        .limits
        .iter()
        .zip(&series.counts[1..])
        .map(|(limit, over_time)| limit_value(limit, counts(over_time)))
        .collect();
    let (unmatched, paths) = &report.unmatched;
    json!({
        "policy": report.config,
        "input": input(&report.input),
        "admitted": report.admitted,
        "refused": report.refused,
        "ambiguous": report.ambiguous,
        "limits": limits,
        "unmatched": {
            "requests": unmatched,
            "paths": paths.iter().map(|(path, count)| json!({"path": path, "requests": count})).collect::<Value>(),
        },
        "over_time": {
            "start": seconds(series.start_us),
            "step": seconds(series.width_us),
            "all": counts(&series.counts[0]),
        },
        "notes": report.notes,
    })
}

fn limit_value(limit: &LimitReport, over_time: Value) -> Value {
    json!({
        "name": limit.name,
        "description": limit.description,
        "enforced": limit.is_enforced,
        "admitted": limit.admitted,
        "refused": limit.refused,
        "keys": limit.keys,
        "keys_refused": limit.keys_refused,
        "first": limit.first.as_ref().map(key),
        "most": limit.most.iter().map(key).collect::<Value>(),
        "over_time": over_time,
    })
}

fn key(key: &KeyReport) -> Value {
    json!({
        "key": key.key,
        "refused": key.refused,
        "requests": key.requests,
        "first": seconds(key.first_us),
        "last": seconds(key.last_us),
        "limited_for": seconds(key.limited_us),
    })
}

/// The statistics of the input as JSON.
pub(crate) fn input(stats: &InputStats) -> Value {
    let files = stats.files.iter();
    let file = |(path, format): &(std::path::PathBuf, &str)| json!({"file": path.display().to_string(), "format": format});
    json!({
        "files": files.map(file).collect::<Value>(),
        "lines": stats.lines,
        "requests": stats.requests,
        "not_http": stats.not_http,
        "unreadable": stats.unreadable,
        "samples": stats.samples,
        "late": stats.late,
        "clock_jumps": stats.jumps,
        "from": stats.span_us.map(|(first_us, _)| seconds(first_us)),
        "to": stats.span_us.map(|(_, last_us)| seconds(last_us)),
    })
}

/// Seconds with six decimals, from digits: a float would be rounded.
pub(crate) fn seconds(us: u64) -> Value {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    serde_json::from_str(&text).unwrap_or(Value::Null)
}
