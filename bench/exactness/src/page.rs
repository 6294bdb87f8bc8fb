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
    let installed = rows.iter().filter(|row| row.version.is_ok());
    push_lines(&mut out, installed.map(|row| (row.peer.name(), results(row))));
    out
}

fn results(row: &Row) -> String {
    let mut out = String::new();
    let told = |of: fn(&Counts) -> u64| row.cells.iter().flatten().any(|counts| of(counts) > 0);
    for found in &row.cells {
        let text = found.as_ref().map_or_else(|_| "n/a".into(), cell);
        let _ = write!(out, " {text} |");
    }
    let yes = |told| if told { "yes" } else { "no" };
    let (waits, remaining) = (told(|c| c.retry.1), told(|c| c.remaining.1));
    let _ = write!(out, " {}, {} |", yes(waits), yes(remaining));
    out
}

/// Writes a line for each name and its cells, one line for neighbours of one program with equal
/// cells: `Tollgate, gcra, leaky-bucket`.
fn push_lines(out: &mut String, lines: impl Iterator<Item = (String, String)>) {
    let mut grouped: Vec<(String, String)> = Vec::new();
    for (name, cells) in lines {
        let (program, variant) = name.split_once(", ").unwrap_or((&name, ""));
        match grouped.last_mut() {
            Some((known, same)) if *same == cells && known.starts_with(&format!("{program}, ")) => {
                let _ = write!(known, ", {variant}");
            }
            _ => grouped.push((name, cells)),
        }
    }
    for (name, cells) in grouped {
        let _ = writeln!(out, "| {name} |{cells}");
    }
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
    let promises = rows.iter().filter_map(|row| {
        let version = row.version.as_ref().ok()?;
        let (promise, peer) = (row.peer.promise().text(), &row.peer);
        let cells = format!(" {version} | {promise} | {} | {} |", peer.documented(), peer.repeat());
        Some((peer.name(), cells))
    });
    push_lines(&mut out, promises);
    out.push_str("\n## Not applicable, and skipped\n\n");
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows {
        if let Err(why) = &row.version {
            let _ = writeln!(out, "* {}: skipped, not installed here ({why})", row.peer.name());
        }
        for (trace, found) in traces.iter().zip(&row.cells) {
            let Err(why) = found else { continue };
            let cell = format!("{} ({})", row.peer.name(), trace.name);
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, cells)) => cells.push(cell),
                None => reasons.push((why, vec![cell])),
            }
        }
    }
    for (why, cells) in reasons {
        let _ = writeln!(out, "* {why}: {}", cells.join(", "));
    }
    out.push_str(END);
    out
}

const TOP: &str = "\
# Who keeps what they promise

Does a limiter admit what it promises, and are its waits true? Each gets the same requests through its own interface, with the same limit. Each is judged by its own
promise, from its own documentation, in exact arithmetic. A cell lists violations; `0` means none.

";

const CELLS: &str = "
* **beyond:** admitted, although the promise was used up. **below:** refused, although it was not. Where these change the sum, *admitted* is what passed in all, and
  *promised* what the promise would have let pass.
* **retry:** waits in refusals that are too short, or longer than the promise needs, beyond rounding up to the limiter's unit. **remaining:** wrong figures of what is
  left. The last column says whether a limiter names them at all.
* **clock step:** the wall clock is set back while time goes on. Limiters that read a monotonic clock do not see it. None of them promises anything about it.
* Libraries run on a virtual clock. Servers and limitador run in real time: only what is wrong for every instant between sending and answer, give or take 2 ms, counts. These
  cells vary with the load of the machine: run them again before you quote one. In the trace of 20 min the servers' clocks run 60 times as fast, by libfaketime.
* HAProxy's rate is an average by design, not a count.

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

`cargo xtask exactness` runs everything that is installed and writes this page; `--only NAME` runs some, and prints the table. [trace.rs](../bench/exactness/src/trace.rs) has
the requests, [promise.rs](../bench/exactness/src/promise.rs) the promises. A cell that you cannot reproduce is a bug of this page: please report it.
";
