//! The report for a terminal.

use super::report::ReplayReport;
use super::rows::{ReportTable, hit_first, hit_too, percent};
use crate::command::table::{plain, table};
use std::fmt::Write;
use tollgate_picture::axis::{format_count, format_offset, format_utc};

/// Formats the report as lines.
pub(super) fn text(report: &ReplayReport) -> String {
    let mut out = heading(report);
    out.push('\n');
    push_table(&mut out, ReportTable::limits(report));
    for limit in report.limits.iter().filter(|limit| limit.refused > 0) {
        let _ = writeln!(out, "\n{}: {}", plain(&limit.name), plain(&limit.description));
        if let Some(first) = hit_first(limit) {
            let _ = writeln!(out, "{}", plain(&first));
        }
        push_table(&mut out, ReportTable::keys(limit));
        if let Some(more) = hit_too(limit) {
            let _ = writeln!(out, "{more}");
        }
    }
    let unmatched = report.unmatched.0;
    if unmatched > 0 {
        let share = percent(unmatched, report.admitted + report.refused);
        let count = format_count(unmatched, "request");
        let _ = writeln!(out, "\nno limit matched: {count}, {share}");
        push_table(&mut out, ReportTable::unmatched(report));
    }
    if !report.notes.is_empty() {
        out.push('\n');
        for note in &report.notes {
            let _ = writeln!(out, "note: {}", plain(note));
        }
    }
    out
}

/// Appends a table, unless it has no rows.
fn push_table(out: &mut String, ReportTable { heads, rows }: ReportTable) {
    if !rows.is_empty() {
        let heads = heads.iter().map(|head| head.to_uppercase()).collect();
        out.push_str(&table(&[vec![heads], rows].concat()));
    }
}

/// Describes the input, and the parts that could not be read.
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
    out.push_str(&format_count(input.requests, "request"));
    if let Some((first_us, last_us)) = input.span_us {
        let (from, to) = (format_utc(first_us), format_utc(last_us));
        let length = format_offset((last_us - first_us) / 1_000_000 * 1_000_000);
        let _ = write!(out, " from {from} to {to}: {length}");
    }
    out.push('\n');
    if input.not_http > 0 {
        let _ = writeln!(out, "{} without a request", format_count(input.not_http, "line"));
    }
    if input.unreadable > 0 {
        let _ = writeln!(out, "{} could not be read:", format_count(input.unreadable, "line"));
        for sample in &input.samples {
            let _ = writeln!(out, "  {}", plain(sample));
        }
    }
    out
}
