//! `cargo xtask faults`: runs the fault scenarios at full length.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use tollgate_faults::clock::now_us;
use tollgate_faults::measurements::{Check, Measurements};
use tollgate_faults::process;
use tollgate_faults::report::{RUNS, ScenarioResult, page};
use tollgate_faults::scenario::{self, FaultScenario, ROWS};
use tollgate_faults::trial::Context;

struct Options {
    program: PathBuf,
    page: PathBuf,
    rows: Vec<&'static FaultScenario>,
    runs: u32,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(2);
        }
    };
    kill_children_on_signal();
    let mut judged = BTreeMap::new();
    for row in &options.rows {
        for run in 1..=options.runs {
            let this = run_scenario(row, run, &options);
            let all = match judged.remove(row.name) {
                Some(before) => ScenarioResult::merge_run(before, this),
                None => this,
            };
            judged.insert(row.name, all);
        }
        // Writes the page after each scenario, so that a later failure loses nothing.
        let old = std::fs::read_to_string(&options.page).unwrap_or_default();
        if let Err(error) = std::fs::write(&options.page, page(&judged, &old)) {
            eprintln!("error: cannot write {}: {error}", options.page.display());
            return ExitCode::FAILURE;
        }
    }
    let held = judged.values().all(ScenarioResult::held);
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one scenario once. Its processes have ended when this returns.
fn run_scenario(row: &FaultScenario, run: u32, options: &Options) -> ScenarioResult {
    let (start_us, name) = (now_us(), row.name);
    println!("== {name} ({run} of {}): {}", options.runs, row.injected);
    let context = Context { program: options.program.clone(), is_full: true };
    let Ok(ended) = catch_unwind(AssertUnwindSafe(|| (row.run)(&context))) else {
        let what = "it comes to an end".to_owned();
        eprintln!("   BROKEN {what}");
        let check = Check { what, held: false, is_timed: false };
        return ScenarioResult::new(Measurements::default(), vec![check]);
    };
    for check in &ended.checks {
        println!("   {} {}", if check.held { "held  " } else { "BROKEN" }, check.what);
    }
    let figures = &ended.figures;
    println!("   {figures:?}");
    println!("== {name}: {} s", (now_us() - start_us) / 1_000_000);
    ScenarioResult::new(ended.figures, ended.checks)
}

/// Kills all children when this process receives a signal.
fn kill_children_on_signal() {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let (Ok(mut end), Ok(mut stop)) =
                (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
            else {
                return;
            };
            tokio::select! {
                _ = end.recv() => {}
                _ = stop.recv() => {}
            }
            process::end_all();
            std::process::exit(130);
        });
    });
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options {
        program: PathBuf::from("tollgate"),
        page: PathBuf::from("faults.md"),
        rows: Vec::new(),
        runs: RUNS,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--program" => options.program = value()?.into(),
            "--page" => options.page = value()?.into(),
            "--row" => {
                let name = value()?;
                let row = scenario::find(&name);
                options.rows.push(row.ok_or(format!("there is no row `{name}`; see --list"))?);
            }
            "--runs" => {
                let runs = value()?;
                let parsed = runs.parse().ok().filter(|runs| *runs > 0);
                options.runs = parsed.ok_or(format!("`{runs}` is not a number of runs"))?;
            }
            "--list" => {
                ROWS.iter().for_each(|row| println!("{:<16} {}", row.name, row.injected));
                return Ok(None);
            }
            other => return Err(format!("unexpected argument `{other}`")),
        }
    }
    if options.rows.is_empty() {
        options.rows = ROWS.iter().collect();
    }
    Ok(Some(options))
}
