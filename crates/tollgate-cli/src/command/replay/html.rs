//! The report as a self-contained page.

use super::report::{LimitReport, ReplayReport};
use super::rows::{ReportTable, hit_first, hit_too, percent};
use std::fmt::Write;
use tollgate_picture::axis::{format_count, format_grouped, format_utc};
use tollgate_picture::escaped;

/// The start of the page, which loads nothing and has no scripts.
const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n\
body{color-scheme:light dark;color:CanvasText;background:Canvas;font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}\n\
table{border-collapse:collapse;width:100%;margin:1em 0}th,td{padding:.25em .75em .25em 0;text-align:left;border-bottom:1px solid #8884;vertical-align:top}\n\
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}td.key{overflow-wrap:anywhere}\n\
.note{border-left:3px solid #e69f00;padding-left:.75em}.muted{opacity:.75}svg{max-width:100%;height:auto}\n</style>\n";

/// Writes the page.
pub(super) fn page(title: &str, report: &ReplayReport, svg: &str) -> String {
    let mut out = String::from(HEAD);
    let all = report.admitted + report.refused;
    let _ = write!(out, "<title>{0}</title>\n<h1>{0}</h1>\n<p>", escaped(title));
    let input = &report.input;
    out.push_str(&format_count(input.requests, "request"));
    if let Some((first_us, last_us)) = input.span_us {
        let _ = write!(out, " from {} to {}", format_utc(first_us), format_utc(last_us));
    }
    let _ = writeln!(
        out,
        ". The policy would have admitted {} and refused {} ({}).</p>",
        format_grouped(report.admitted),
        format_grouped(report.refused),
        percent(report.refused, all)
    );
    for note in &report.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
    table(&mut out, ReportTable::limits(report));
    out.push_str(svg);
    for limit in report.limits.iter().filter(|limit| limit.refused > 0) {
        keys(&mut out, limit);
    }
    let unmatched = report.unmatched.0;
    if unmatched > 0 {
        let (count, share) = (format_count(unmatched, "request"), percent(unmatched, all));
        let _ = writeln!(out, "<h2>No limit matched</h2>\n<p>{count}, {share}.</p>");
        table(&mut out, ReportTable::unmatched(report));
    }
    source(&mut out, report);
    out.push_str("</html>\n");
    out
}

fn keys(out: &mut String, limit: &LimitReport) {
    let _ = writeln!(out, "<h2>{}</h2>", escaped(&limit.name));
    let _ = write!(out, "<p class=\"muted\">{}</p>", escaped(&limit.description));
    if let Some(line) = hit_first(limit) {
        let _ = writeln!(out, "<p>{}</p>", escaped(&line));
    }
    table(out, ReportTable::keys(limit));
    if let Some(line) = hit_too(limit) {
        let _ = writeln!(out, "<p>{line}</p>");
    }
}

/// Writes the files, and the number of lines that could not be read.
fn source(out: &mut String, report: &ReplayReport) {
    let input = &report.input;
    out.push_str("<h2>Logs</h2>\n");
    let rows = input
        .files
        .iter()
        .map(|(path, format)| vec![path.display().to_string(), (*format).to_owned()]);
    table(out, ReportTable { heads: &["file", "format"], rows: rows.collect() });
    let _ = writeln!(
        out,
        "<p>{}: {}, {} without a request, {} that could not be read.</p>",
        format_count(input.lines, "line"),
        format_count(input.requests, "request"),
        format_grouped(input.not_http),
        format_grouped(input.unreadable)
    );
    for sample in &input.samples {
        let _ = writeln!(out, "<p class=\"muted\">{}</p>", escaped(sample));
    }
}

/// Writes a table with escaped cells. Numbers are aligned to the right.
fn table(out: &mut String, ReportTable { heads, rows }: ReportTable) {
    let class = |place: usize| if place == 0 { "key" } else { "number" };
    out.push_str("<table>\n<tr>");
    for (place, head) in heads.iter().enumerate() {
        let _ = write!(out, "<th class=\"{}\">{}</th>", class(place), escaped(head));
    }
    out.push_str("</tr>\n");
    for row in rows {
        out.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td class=\"{}\">{}</td>", class(place), escaped(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}
