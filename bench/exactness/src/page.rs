//! Writes the table, and the page around it.

use crate::peer::{NotApplicable, Peer};
use crate::promise::Counts;
use crate::trace::Trace;
use std::fmt::Write;

/// The row of a peer in the table.
pub(crate) struct Row {
    pub(crate) peer: Box<dyn Peer>,
    pub(crate) version: Result<String, String>,
    pub(crate) cells: Vec<Result<Counts, NotApplicable>>,
}

/// The text of a cell; `0` if nothing is wrong.
fn cell(counts: &Counts) -> String {
    let mut parts = Vec::new();
    if counts.beyond > 0 {
        parts.push(format!("{} beyond", counts.beyond));
    }
    if counts.below > 0 {
        parts.push(format!("{} below", counts.below));
    }
    if !parts.is_empty() && counts.units.0 != counts.units.1 {
        parts.push(format!("admitted {}, promised {}", counts.units.0, counts.units.1));
    }
    for ((wrong, all), what) in [(counts.retry, "retry"), (counts.remaining, "remaining")] {
        if wrong > 0 {
            parts.push(format!("{what} {wrong} of {all}"));
        }
    }
    if parts.is_empty() { "0".into() } else { parts.join("<br>") }
}

/// One row per installed peer, one column per trace.
pub(crate) fn table(traces: &[Trace], rows: &[Row]) -> String {
    let mut out = String::from("| limiter |");
    traces.iter().for_each(|trace| _ = write!(out, " {} |", trace.name));
    out.push_str(" names waits, remaining |\n| --- |");
    traces.iter().for_each(|_| out.push_str(" --- |"));
    out.push_str(" --- |\n");
    for row in rows.iter().filter(|row| row.version.is_ok()) {
        let _ = write!(out, "| {} |", row.peer.name());
        let told = |of: fn(&Counts) -> u64| row.cells.iter().flatten().any(|counts| of(counts) > 0);
        for found in &row.cells {
            let text = found.as_ref().map_or_else(|_| "n/a".into(), cell);
            let _ = write!(out, " {text} |");
        }
        let yes = |told| if told { "yes" } else { "no" };
        let (waits, remaining) = (told(|c| c.retry.1), told(|c| c.remaining.1));
        let _ = writeln!(out, " {}, {} |", yes(waits), yes(remaining));
    }
    out
}

/// `docs/exactness.md`.
pub(crate) fn page(traces: &[Trace], rows: &[Row]) -> String {
    let mut out = String::from(TOP);
    out.push_str(&table(traces, rows));
    out.push_str(CELLS);
    for trace in traces {
        let seconds = trace.limit.window_us / 1_000_000;
        let _ = writeln!(
            out,
            "| {} | {} in {seconds} s | {} | {} |",
            trace.name,
            trace.limit.count,
            trace.steps.len(),
            trace.what
        );
    }
    out.push_str(PROMISES);
    for row in rows {
        let Ok(version) = &row.version else { continue };
        let _ = writeln!(
            out,
            "| {} | {version} | {} | {} | {} |",
            row.peer.name(),
            row.peer.promise().text(),
            row.peer.documented(),
            row.peer.repeat()
        );
    }
    out.push_str("\n## Not applicable, and skipped\n\n");
    for row in rows {
        if let Err(why) = &row.version {
            let _ = writeln!(out, "* {}: skipped, not installed here ({why})", row.peer.name());
        }
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (trace, found) in traces.iter().zip(&row.cells) {
            let Err(why) = found else { continue };
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, names)) => names.push(trace.name),
                None => reasons.push((why, vec![trace.name])),
            }
        }
        for (why, names) in reasons {
            let _ = writeln!(out, "* {}, {}: {why}", row.peer.name(), names.join(", "));
        }
    }
    out.push_str(END);
    out
}

const TOP: &str = "\
# Who keeps what they promise

The same requests, through Tollgate and others, each by its own interface and with the same limit stated to it. Algorithms differ, so each is judged by its own promise, from
its own documentation, in exact arithmetic. A cell has what went wrong; `0` is nothing.

";

const CELLS: &str = "
* **beyond:** admitted, although the promise was used up by what the same limiter had admitted before. **below:** refused, although it was not.
  Where these change the sum, *admitted* is what passed in all, and *promised* what the promise alone would have let pass.
* **retry:** waits in refusals that are too short to be admitted then, or longer than the promise needs, beyond rounding up to the unit in which the limiter names
  them. **remaining:** figures of what is left that are not what is left. The last column says whether a limiter names them at all.
* Libraries run on a virtual clock. Servers and limitador run in real time: a decision fell between sending and answer, give or take 2 ms, and only what is wrong for
  every instant in between counts. Of threads, only the sum is judged. In the trace of 20 min the servers' clocks run 60 times as fast, by libfaketime.
* Cells of real time vary with the load of the machine: run them again before you quote one. HAProxy's rate is an average by design, not a count.
* **clock step:** the wall clock is set back while time goes on. Limiters that read a monotonic clock do not see it; those that read the wall clock, or get it from
  their caller, do. None of them promises anything about it.

## Traces

| trace | limit | requests | what |
| --- | --- | --- | --- |
";

const PROMISES: &str = "
## Promises, versions, and how to repeat it

| limiter | version | judged by | documented as | repeat |
| --- | --- | --- | --- | --- |
";

const END: &str = "
## Repeat all

`cargo xtask exactness` runs everything that is installed and writes this page; `--only NAME` runs some, and prints the table. The requests of each trace are in
[trace.rs](../bench/exactness/src/trace.rs), the promises in [promise.rs](../bench/exactness/src/promise.rs). A cell that you cannot reproduce is a bug of this page: please report it.
";
