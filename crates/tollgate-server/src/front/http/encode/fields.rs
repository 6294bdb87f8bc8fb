//! A verdict's status and header fields.

use smallvec::SmallVec;
use tollgate::{Row, Source, Verdict};
use tollgate_core::Numbers;
use tollgate_core::header::{self, Fields, Profile, Scope, Unit};

/// 200 when admitted, 503 when a limit that cannot be decided refuses, 429 otherwise.
pub fn status(verdict: &Verdict<'_>) -> u16 {
    let failed = |row: &Row<'_>| row.refuses() && row.source == Source::FailClosed;
    match verdict.allowed {
        true => 200,
        false if verdict.rows.iter().any(failed) => 503,
        false => 429,
    }
}

/// Calls `write` with the name and value of each field of an answer given at `now_us`: those of the configured
/// profiles, `Retry-After` on a refusal that a wait can help, and the source where it is not the usual one.
/// `fields` is a buffer to keep between answers.
pub fn each(
    verdict: &Verdict<'_>,
    profiles: &[Profile],
    now_us: u64,
    fields: &mut Fields,
    mut write: impl FnMut(&'static str, &str),
) {
    fields.clear();
    let rows: SmallVec<[header::Row<'_>; 4]> =
        verdict.rows.iter().filter(|row| is_shown(row)).map(shown).collect();
    for &profile in profiles {
        header::render(profile, &rows, now_us, fields);
    }
    if !verdict.allowed
        && let Some(retry_after_us) = verdict.retry_after_us
    {
        fields.push_retry_after(retry_after_us);
    }
    for (name, value) in fields.iter() {
        write(name, value);
    }
    if !verdict.source.is_usual() {
        write("X-Tollgate-Source", verdict.source.as_str());
    }
}

/// A shadow limit decides nothing, and one that is not disclosed keeps its figures to itself.
fn is_shown(row: &Row<'_>) -> bool {
    row.enforced() && row.limit.disclose
}

fn shown<'a>(row: &Row<'a>) -> header::Row<'a> {
    let unit = match row.limit.numbers {
        Some(Numbers::Concurrency(_)) => Unit::ConcurrentRequests,
        _ => Unit::Requests,
    };
    let scope = if row.limit.key.is_empty() { Scope::Shared } else { Scope::User };
    header::Row::new(&row.limit.name, row.window_us, &row.outcome)
        .unit(unit)
        .scope(scope)
        .bucket(row.bucket)
}
