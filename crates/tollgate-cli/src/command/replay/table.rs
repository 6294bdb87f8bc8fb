//! The report for a terminal.

use super::report::ReplayReport;
use crate::command::table::{plain, table};
use std::fmt::Write;
use tollgate_picture::axis::{format_grouped, format_offset, format_utc};

/// The report, in lines.
pub(super) fn text(report: &ReplayReport) -> String {
    let mut out = heading(report);
    let mut rows = vec![words(&["LIMIT", "ADMITTED", "REFUSED", "", "KEYS", "KEYS HIT", ""])];
    for limit in &report.limits {
        rows.push(vec![
            limit.name.clone(),
            format_grouped(limit.admitted),
            format_grouped(limit.refused),
            percent(limit.refused, limit.admitted + limit.refused),
            format_grouped(limit.keys),
            format_grouped(limit.keys_refused),
            if limit.is_enforced { String::new() } else { "not enforced".into() },
        ]);
    }
    let all = report.admitted + report.refused;
    rows.push(vec![
        "all requests".into(),
        format_grouped(report.admitted),
        format_grouped(report.refused),
        percent(report.refused, all),
    ]);
    out.push('\n');
    out.push_str(&table(&rows));
    for limit in report.limits.iter().filter(|limit| limit.refused > 0) {
        let _ = writeln!(out, "\n{}: {}", plain(&limit.name), plain(&limit.description));
        if let Some(first) = &limit.first {
            let (key, at) = (plain(&first.key), format_utc(first.first_us));
            let _ = writeln!(out, "hit first: {key}, at {at}");
        }
        let mut rows = vec![words(&["KEY", "REFUSED", "OF", "LIMITED FOR", "FROM", "TO"])];
        rows.extend(limit.most.iter().map(|key| {
            vec![
                key.key.clone(),
                format_grouped(key.refused),
                format_grouped(key.requests),
                format_offset(key.limited_us / 1_000_000 * 1_000_000),
                format_utc(key.first_us),
                format_utc(key.last_us),
            ]
        }));
        out.push_str(&table(&rows));
        let more = limit.keys_refused - limit.most.len() as u64;
        if more > 0 {
            let _ = writeln!(out, "and {} more keys", format_grouped(more));
        }
    }
    let (unmatched, paths) = &report.unmatched;
    if *unmatched > 0 {
        let share = percent(*unmatched, all);
        let _ =
            writeln!(out, "\nno limit matched: {} requests, {share}", format_grouped(*unmatched));
        for (path, count) in paths {
            let _ = writeln!(out, "  {} {}", format_grouped(*count), plain(path));
        }
    }
    if !report.notes.is_empty() {
        out.push('\n');
        for note in &report.notes {
            let _ = writeln!(out, "note: {}", plain(note));
        }
    }
    out
}

/// What was read, and what of it could not be.
fn heading(report: &ReplayReport) -> String {
    let input = &report.input;
    let mut out = String::new();
    let files: Vec<String> =
        input.files.iter().map(|(path, format)| format!("{} ({format})", path.display())).collect();
    let shown = files.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    let more = match files.len().saturating_sub(3) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let _ = writeln!(out, "{}{more}, decided by {}", plain(&shown), plain(&report.config));
    let _ = write!(out, "{} requests", format_grouped(input.requests));
    if let Some((first_us, last_us)) = input.span_us {
        let (from, to) = (format_utc(first_us), format_utc(last_us));
        let length = format_offset((last_us - first_us) / 1_000_000 * 1_000_000);
        let _ = write!(out, " from {from} to {to}: {length}");
    }
    out.push('\n');
    if input.not_http > 0 {
        let _ = writeln!(out, "{} lines without a request", format_grouped(input.not_http));
    }
    if input.unreadable > 0 {
        let _ = writeln!(out, "{} lines could not be read:", format_grouped(input.unreadable));
        for sample in &input.samples {
            let _ = writeln!(out, "  {}", plain(sample));
        }
    }
    out
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `12.3 %`, in integers.
pub(in crate::command) fn percent(part: u64, of: u64) -> String {
    let tenths = (u128::from(part) * 1_000).checked_div(of.into()).unwrap_or(0);
    match tenths {
        0 if part > 0 => "< 0.1 %".into(),
        tenths => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}
