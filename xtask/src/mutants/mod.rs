//! `cargo xtask mutants`: breaks the code in one named way at a time, and shows that a test fails.

mod catalog;
mod report;
mod scratch;

use crate::process::{self, Echo};
use crate::{Failure, Verb};
use catalog::Mutant;
use scratch::Scratch;
use std::collections::BTreeSet;
use std::process::Command;

pub(crate) const VERB: Verb = Verb {
    name: "mutants",
    summary: "break the code on purpose and show that a test notices",
    help: "
Options:
  --list        the names and what each breaks
  --only NAME   the mutants whose names begin so, as `lease-`; the table is left as it is

Mutants are the files of `xtask/mutants/`: a name, the property that breaks, the file, the text to find, the
text to put there, and the tests to run. They are applied to a copy of the workspace below the target folder, so
the tree itself never changes. A mutant that survives, does not compile or no longer applies is a failure.
After a full run the table is in `docs/internals/mutants.md`.",
    run,
};

/// The time limit of a test, in seconds. A mutant can make a loop endless; waiting longer would
/// show nothing new.
const PATIENCE: &str = "600";

/// The result of the tests for one mutant.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// These tests failed.
    Killed(Vec<String>),
    /// The tests did not end.
    Hung,
    Survived,
    /// The mutated code does not compile.
    Invalid,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct MutantOptions {
    list: bool,
    only: Option<String>,
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = parse(arguments)?;
    let root = process::root();
    let all = catalog::load(&root.join("xtask/mutants")).map_err(Failure::Failed)?;
    if options.list {
        for mutant in &all {
            println!("{:<36} {:<17} {}", mutant.name, mutant.property, mutant.breaks);
        }
        return Ok(());
    }
    let is_chosen =
        |mutant: &&Mutant| options.only.as_ref().is_none_or(|only| mutant.name.starts_with(only));
    let chosen: Vec<&Mutant> = all.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(Failure::Usage(
            "no mutant has a name that begins so; `--list` shows them".into(),
        ));
    }
    let scratch = Scratch::new(&root, &process::target_dir().join("mutants"))?;
    check_baseline(&scratch, &chosen)?;
    let mut fates = Vec::new();
    let mut alive = Vec::new();
    for mutant in chosen {
        let fate = try_one(&scratch, mutant)?;
        println!("{:<36} {}", mutant.name, report::words(&fate));
        if !matches!(fate, Fate::Killed(_) | Fate::Hung) {
            alive.push(mutant.name.clone());
        }
        fates.push((mutant, fate));
    }
    if options.only.is_none() {
        report::write(&root.join("docs/internals/mutants.md"), &fates)?;
    }
    match alive.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!("no test notices: {}", alive.join(", ")))),
    }
}

/// Checks that the tests pass without a mutant; otherwise a failure would prove nothing.
fn check_baseline(scratch: &Scratch, mutants: &[&Mutant]) -> Result<(), Failure> {
    for test in mutants.iter().map(|mutant| &mutant.test).collect::<BTreeSet<_>>() {
        println!("unchanged: {test}");
        let fate = run_tests(scratch, test)?;
        if fate != Fate::Survived {
            return Err(Failure::Failed(format!(
                "`{test}` does not pass on the unchanged code: {}",
                report::words(&fate)
            )));
        }
    }
    Ok(())
}

fn try_one(scratch: &Scratch, mutant: &Mutant) -> Result<Fate, Failure> {
    let original = scratch.read(&mutant.file)?;
    scratch.write(&mutant.file, &mutant.apply(&original).map_err(Failure::Failed)?)?;
    let fate = run_tests(scratch, &mutant.test);
    scratch.write(&mutant.file, &original)?;
    fate
}

fn run_tests(scratch: &Scratch, test: &str) -> Result<Fate, Failure> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE]).args(test.split_whitespace());
    command.current_dir(&scratch.tree).env("CARGO_TARGET_DIR", &scratch.target);
    // A failing case must not be saved in the copy, or it would decide about the next mutant.
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    // Any failing case will do; the smallest one is not needed.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    let finished = process::run(&mut command, Echo::Off)?;
    Ok(judge(finished.status.code(), &finished.lines))
}

fn judge(code: Option<i32>, lines: &[String]) -> Fate {
    if code == Some(0) {
        return Fate::Survived;
    }
    if lines.iter().any(|line| line.contains("could not compile")) {
        return Fate::Invalid;
    }
    if code == Some(124) {
        return Fate::Hung;
    }
    let failed: BTreeSet<String> = lines.iter().filter_map(|line| failed_test(line)).collect();
    match failed.is_empty() {
        // A run that fails without a failed test (no such package, no such test) proves nothing.
        true => Fate::Invalid,
        false => Fate::Killed(failed.into_iter().collect()),
    }
}

/// Parses `test gcra::tests::paces ... FAILED`, or nextest's
/// `FAIL [   0.004s] (1/2) tollgate-core gcra::tests::paces`.
fn failed_test(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(test) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
    {
        // A documentation example is named `crates/x/src/lib.rs - (line 8)`; the line is dropped.
        return Some(test.split(" (line").next().unwrap_or(test).trim_end_matches(" -").to_owned());
    }
    line.strip_prefix("FAIL [").and_then(|rest| rest.rsplit(' ').next()).map(String::from)
}

fn parse(arguments: &[String]) -> Result<MutantOptions, Failure> {
    let mut options = MutantOptions::default();
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        match name.as_str() {
            "--list" => options.list = true,
            "--only" => match rest.next() {
                Some(value) => options.only = Some(value.clone()),
                None => return Err(Failure::Usage("`--only` lacks a name".into())),
            },
            _ => return Err(Failure::Usage(format!("unexpected argument `{name}`"))),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests;
