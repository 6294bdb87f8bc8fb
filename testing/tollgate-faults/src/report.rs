//! `docs/faults.md`: what full runs showed, the worst of several for each row.

#[cfg(test)]
mod tests;

use crate::figures::{Check, Measurements, cores};
use crate::row::{FaultScenario, ROWS};
use std::collections::BTreeMap;

/// What all runs of a row showed.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// The worst of each.
    pub figures: Measurements,
    /// Whether each held in every run.
    pub checks: Vec<Check>,
    /// How many.
    pub runs: u32,
}

impl ScenarioResult {
    /// One run.
    pub fn new(figures: Measurements, checks: Vec<Check>) -> Self {
        Self { figures, checks, runs: 1 }
    }

    /// With another run.
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

    /// Whether everything held.
    pub fn held(&self) -> bool {
        self.checks.iter().all(|check| check.held)
    }
}

const HEAD: &str = "# Faults, injected for real

Written by `cargo xtask faults`; do not edit. Each row starts its own servers and `tollgate serve` processes (three nodes unless it says
otherwise) under open-loop load, does something to them, and looks at the answers from the client's side: a unit counts as admitted beyond a
limit only if it was too much wherever between sending and receiving the decision fell. Figures are the worst of the runs. Nodes, servers, proxy and clients share
the cores of one machine, and times count from when a request was due. [operations.md](operations.md#what-each-failure-does)
says what each failure means for whoever runs nodes.

* **over**: units admitted beyond a limit. **errors**: answers that are neither a decision nor a limit's `on_store_failure`. **lost**: requests
  without an answer. **by policy**: requests that `on_store_failure` answered.
* **p99**: of the answers before the fault, and while it lasted. **recovery**: from the end of the fault to the last answer without the store.
* **in flight**: requests under way at once, at the clients. **memory**: growth of the node that grew most.
* **load**: requests a second that were due, the nodes that they were for, and how many processes wanted to run at once, on average, on how many cores. One thread asks,
  over as many connections as requests are in flight; a node has a worker for each core. With many more processes than cores every time on this page is
  the time that somebody waited for a core, and 25 ms are over before a call was sent; counts hold all the same. A row with one number here was measured before the rest was
  noted: 600 requests a second, three nodes and two cores unless the row says otherwise.
* **runs**: how often the row ran; each figure is the worst of them. A row that shows fewer than three waits for the next full run.
";

/// The page, with the rows that did not run taken from the page that was there.
pub fn page(judged: &BTreeMap<&'static str, ScenarioResult>, old: &str) -> String {
    let kept = |heading: &str, row: &FaultScenario| {
        let section = old.split("\n## ").find(|section| section.starts_with(heading))?;
        let start = format!("| `{}` |", row.name);
        section.lines().find(|line| line.starts_with(&start)).map(str::to_owned)
    };
    let mut text = HEAD.to_owned();
    text.push_str(
        "\n## Expectations\n\n| row | injected | expected | held |\n| --- | --- | --- | --- |\n",
    );
    for row in ROWS {
        let line = judged.get(row.name).map(|judged| expectation(row, judged));
        if let Some(line) = line.or_else(|| kept("Expectations", row)) {
            text.push_str(&format!("{line}\n"));
        }
    }
    text.push_str("\n## Figures\n\n| row | runs | requests | over | errors | lost | by policy | p99, ms | recovery, ms | in flight | memory, MiB | load | besides |\n");
    text.push_str(
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in ROWS {
        let line = judged.get(row.name).map(|judged| numbers(row, judged));
        if let Some(line) = line.or_else(|| kept("Figures", row)) {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

fn expectation(row: &FaultScenario, judged: &ScenarioResult) -> String {
    let broken: Vec<_> =
        judged.checks.iter().filter(|check| !check.held).map(|check| check.what.as_str()).collect();
    let held = match broken.is_empty() {
        true => "yes".to_owned(),
        false => format!("**no**: {}", broken.join("; ")),
    };
    format!("| `{}` | {} | {} | {held} |", row.name, row.injected, row.expected)
}

fn numbers(row: &FaultScenario, judged: &ScenarioResult) -> String {
    let figures = &judged.figures;
    let or = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let p99 = figures.p99_us.map(|(without, with)| format!("{} → {}", ms(without), ms(with)));
    let notes: Vec<_> =
        figures.notes.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let busy = format!("{}.{}", figures.load_tenths / 10, figures.load_tenths % 10);
    let load = match figures.asked {
        Some((per_second, nodes)) => {
            format!("{per_second}/s, nodes: {nodes}; {busy} on {} cores", cores())
        }
        None => busy,
    };
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        row.name,
        judged.runs,
        figures.requests,
        or(figures.over_admission.map(|over| over.to_string())),
        figures.errors,
        figures.lost,
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

/// Milliseconds with one digit more.
fn ms(us: u64) -> String {
    format!("{}.{}", us / 1_000, us % 1_000 / 100)
}
