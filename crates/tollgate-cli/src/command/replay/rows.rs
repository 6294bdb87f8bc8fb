//! The tables of the report, shared by the terminal and the page.

use super::report::{LimitReport, ReplayReport};
use tollgate_picture::axis::{format_grouped, format_offset, format_utc};

/// A table with its heading, in lower case.
pub(super) struct ReportTable {
    pub(super) heads: &'static [&'static str],
    pub(super) rows: Vec<Vec<String>>,
}

impl ReportTable {
    /// The decisions of each limit, then those on all requests.
    pub(super) fn limits(report: &ReplayReport) -> Self {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for limit in &report.limits {
            let mode = if limit.is_enforced { "" } else { " (not enforced)" };
            let mut row = verdicts(format!("{}{mode}", limit.name), limit.admitted, limit.refused);
            row.extend([limit.keys, limit.keys_refused].map(format_grouped));
            rows.push(row);
        }
        rows.push(verdicts("all requests".into(), report.admitted, report.refused));
        Self { heads: &["limit", "admitted", "refused", "share", "keys", "keys hit"], rows }
    }

    /// The keys that a limit refused most.
    pub(super) fn keys(limit: &LimitReport) -> Self {
        let rows = limit.most.iter().map(|key| {
            vec![
                key.key.clone(),
                format_grouped(key.refused),
                format_grouped(key.requests),
                format_offset(key.limited_us / 1_000_000 * 1_000_000),
                format_utc(key.first_us),
                format_utc(key.last_us),
            ]
        });
        let heads = &["key", "refused", "of", "limited for", "from", "to"];
        Self { heads, rows: rows.collect() }
    }

    /// The paths of requests that no limit matched.
    pub(super) fn unmatched(report: &ReplayReport) -> Self {
        let rows = report.unmatched.1.iter();
        let rows = rows.map(|(path, count)| vec![path.clone(), format_grouped(*count)]);
        Self { heads: &["path", "requests"], rows: rows.collect() }
    }
}

fn verdicts(name: String, admitted: u64, refused: u64) -> Vec<String> {
    let share = percent(refused, admitted + refused);
    vec![name, format_grouped(admitted), format_grouped(refused), share]
}

/// Names the key that a limit would have refused first, and when.
pub(super) fn hit_first(limit: &LimitReport) -> Option<String> {
    let first = limit.first.as_ref()?;
    Some(format!("hit first: {}, at {}", first.key, format_utc(first.first_us)))
}

/// `and 3 more keys`, if more keys were refused than the table has.
pub(super) fn hit_too(limit: &LimitReport) -> Option<String> {
    more_keys(limit.keys_refused - limit.most.len() as u64)
}

/// `and 3 more keys`; `None` for zero.
pub(crate) fn more_keys(count: u64) -> Option<String> {
    let noun = if count == 1 { "key" } else { "keys" };
    (count > 0).then(|| format!("and {} more {noun}", format_grouped(count)))
}

/// `12.3 %`, in integers.
pub(crate) fn percent(part: u64, of: u64) -> String {
    let tenths = (u128::from(part) * 1_000).checked_div(of.into()).unwrap_or(0);
    match tenths {
        0 if part > 0 => "< 0.1 %".into(),
        tenths => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}
