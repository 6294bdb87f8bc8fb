//! `docs/faults.md`: the results of full runs, the worst of several for each scenario.

#[cfg(test)]
mod tests;

use crate::measurements::{Check, Measurements, cores};
use crate::scenario::{FaultScenario, ROWS};
use std::collections::BTreeMap;

/// The result of all runs of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// The worst values.
    pub figures: Measurements,
    /// Each expectation, and whether it held in every run.
    pub checks: Vec<Check>,
    /// The number of runs.
    pub runs: u32,
}

impl ScenarioResult {
    /// Creates the result of one run.
    pub fn new(figures: Measurements, checks: Vec<Check>) -> Self {
        Self { figures, checks, runs: 1 }
    }

    /// Merges another run.
    pub fn merge_run(self, other: Self) -> Self {
        let mut checks = self.checks;
        for check in other.checks {
            match checks.iter_mut().find(|known| known.what == check.what) {
                Some(known) => known.held &= check.held,
                None => checks.push(check),
            }
        }
        Self { figures: self.figures.worst(other.figures), checks, runs: self.runs + other.runs }
    }

    /// Whether every expectation held.
    pub fn held(&self) -> bool {
        self.checks.iter().all(|check| check.held)
    }
}

/// The usual number of runs, which the page does not repeat.
pub const RUNS: u32 = 3;

const HEAD: &str = "# Injected faults

What happens when servers, networks, nodes and clocks fail? `cargo xtask faults` injects each fault under open-loop load, judges the answers at the client, and writes
this page. Each row starts its own servers and `tollgate serve` processes: three nodes unless it says otherwise. A unit is over the limit only if it exceeds the limit
at every instant between sending and receiving. [Operations](operations.md#what-each-failure-does) says what each failure means.

Expectations hold in every run, unless a row says **not held**. A row without figures has not run at full length yet.

* **over**: units admitted beyond a limit. **by policy**: requests that `on_store_failure` answered.
* **p99**: before the fault → during it, from when a request was due. **recovery**: from the end of the fault to the last answer without the store.
* **in flight**: most requests in flight at once. **memory**: growth of the node that grew most.
* **load**: requests due per second, nodes, and runnable processes on average / cores. With many more processes than cores,
  times show the wait for a core, and a deadline of 25 ms may pass before a call is sent. Counts are exact even then.
* **besides** names *errors*, answers that are neither a decision nor a limit's `on_store_failure`, and *lost* requests, without an answer, if there are any.

Each figure is the worst of three runs, unless the row names another number.
";

/// Writes the page. Scenarios that did not run keep their rows of the old page.
pub fn page(judged: &BTreeMap<&'static str, ScenarioResult>, old: &str) -> String {
    let kept = |heading: &str, row: &FaultScenario| {
        let section = old.split("\n## ").find(|section| section.starts_with(heading))?;
        let start = format!("| `{}` |", row.name);
        section.lines().find(|line| line.starts_with(&start)).map(str::to_owned)
    };
    let mut text = HEAD.to_owned();
    text.push_str("\n## Expectations\n\n| row | injected | expected |\n| --- | --- | --- |\n");
    for row in ROWS {
        let line = judged.get(row.name).map(|judged| expectation(row, &judged.checks));
        let line = line.or_else(|| kept("Expectations", row));
        text.push_str(&format!("{}\n", line.unwrap_or_else(|| expectation(row, &[]))));
    }
    text.push_str("\n## Figures\n\n| row | requests | over | by policy | p99, ms | recovery, ms | in flight | memory, MiB | load | besides |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for row in ROWS {
        let line = judged.get(row.name).map(|judged| numbers(row, judged));
        if let Some(line) = line.or_else(|| kept("Figures", row)) {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

fn expectation(row: &FaultScenario, checks: &[Check]) -> String {
    let broken: Vec<_> =
        checks.iter().filter(|check| !check.held).map(|check| check.what.as_str()).collect();
    let broken = match broken.is_empty() {
        true => String::new(),
        false => format!(" (**not held**: {})", broken.join("; ")),
    };
    format!("| `{}` | {} | {}{broken} |", row.name, row.injected, row.expected)
}

fn numbers(row: &FaultScenario, judged: &ScenarioResult) -> String {
    let figures = &judged.figures;
    let or = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let p99 = figures.p99_us.map(|(without, with)| format!("{} → {}", ms(without), ms(with)));
    let runs = if judged.runs == RUNS { 0 } else { judged.runs.into() };
    let rare = [("runs", runs), ("errors", figures.errors), ("lost", figures.lost)];
    let rare = rare.into_iter().filter(|(_, count)| *count > 0);
    let mut notes: Vec<_> = rare.map(|(name, count)| format!("{name}: {count}")).collect();
    notes.extend(figures.notes.iter().map(|(name, value)| format!("{name}: {value}")));
    let busy = format!("{}.{}", figures.load_tenths / 10, figures.load_tenths % 10);
    let load = match figures.asked {
        Some((per_second, nodes)) => {
            format!("{per_second}/s, {nodes} nodes, {busy}/{}", cores())
        }
        None => busy,
    };
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        row.name,
        figures.requests,
        or(figures.over_admission.map(|over| over.to_string())),
        figures.by_policy,
        or(p99),
        or(figures.recovery_us.map(|time| (time / 1_000).to_string())),
        figures.in_flight_max,
        or(figures.rss_growth_kib.map(|kib| format!(
            "{}.{}",
            kib >> 10,
            ((kib & 1_023) * 10) >> 10
        ))),
        load,
        notes.join("; "),
    )
}

/// Milliseconds with one decimal.
fn ms(us: u64) -> String {
    format!("{}.{}", us / 1_000, us % 1_000 / 100)
}
