//! Reads logs, and describes their contents: for the report, and for a run without requests.

use super::Progress;
use crate::command::table::plain;
use crate::command::{Stop, UNUSABLE};
use tollgate_logs::{InputStats, Logs, Record};
use tollgate_picture::axis::{format_grouped, format_offset};

/// The number of requests between two reads of the clock.
const PROGRESS_EVERY: u64 = 8_192;

/// The exit status of a run: `whole` if all logs were read to their ends. Files with damage are
/// named on standard error; lines after the damage were not counted.
pub(crate) fn input_status(stats: &InputStats, whole: u8) -> u8 {
    for broken in &stats.broken {
        eprintln!("tollgate: {}", plain(broken));
    }
    if stats.broken.is_empty() { whole } else { UNUSABLE }
}

/// Calls `take` with every request, and shows the progress. Returns the statistics.
pub(crate) fn read_requests(
    logs: &mut Logs,
    progress: &mut Progress,
    mut take: impl FnMut(Record<'_>),
) -> Result<InputStats, Stop> {
    let mut requests = 0_u64;
    while let Some(record) = logs.next_record()? {
        take(record);
        requests += 1;
        if requests.is_multiple_of(PROGRESS_EVERY) {
            let (read, all) = logs.progress();
            progress.show(requests, all.map(|all| (read, all)));
        }
    }
    require_requests(logs.stats())
}

/// Returns the statistics if the logs have a request; otherwise explains why not, and what to do.
fn require_requests(stats: &InputStats) -> Result<InputStats, Stop> {
    if stats.requests > 0 {
        return Ok(stats.clone());
    }
    let files = stats.files.iter().map(|(path, _)| path).chain(&stats.empty);
    let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    let (files, verb) = (plain(&files.join(", ")), if files.len() == 1 { "is" } else { "are" });
    if let Some(broken) = stats.broken.first() {
        return Err(Stop::Unusable(plain(broken)));
    }
    let why = match stats.lines {
        0 => format!("{files} {verb} empty"),
        lines => format!("{files}: no line of {} is a request", format_grouped(lines)),
    };
    Err(Stop::Unusable(format!(
        "{why}; name a log with requests: after a rotation they are in a file such as access.log.1"
    )))
}

/// Returns notes about parts of the logs that could not be used.
pub(crate) fn input_notes(stats: &InputStats) -> Vec<String> {
    let mut notes = Vec::new();
    if stats.late > 0 {
        let late_us = stats.late_us_max / 1_000_000 * 1_000_000;
        notes.push(format!(
            "{} requests were out of order by up to {}, too far to be sorted",
            format_grouped(stats.late),
            format_offset(late_us)
        ));
    }
    if stats.jumps > 0 {
        notes.push(format!(
            "the clock jumps {} times: an hour back or a day ahead from one line to the next",
            stats.jumps
        ));
    }
    notes.extend(stats.empty.iter().map(|path| format!("{} is empty", path.display())));
    notes.extend(stats.broken.iter().cloned());
    notes
}
