//! `cargo xtask faults`: runs the table of faults at full length, and writes the page about it.

use crate::process;
use crate::{Failure, Verb};
use std::process::Command;

pub(crate) const VERB: Verb = Verb {
    name: "faults",
    summary: "inject every fault at full length and write docs/faults.md",
    help: "
Options:
  --row NAME   one row alone; may be repeated
  --runs N     how often each row runs (3); the page has the worst
  --list       the rows

Builds `tollgate` and the harness for release, and runs the rows of `testing/tollgate-faults/src/scenario/mod.rs` one after the
other, each with its own servers (redis-server), nodes and load. Rows that do not run stay on the page as they are.
About half an hour for all rows with --runs 1; a machine with something else to do shows in the times. The short form of
every row is part of `cargo xtask test`.",
    run,
};

/// The packages with the binaries that the scenarios need.
const BUILT: &[&str] = &["--package", "tollgate-cli", "--package", "tollgate-faults"];

const NOT_HELD: &str = "not everything held; see above";

fn run(arguments: &[String]) -> Result<(), Failure> {
    check(arguments)?;
    let mut build = process::cargo();
    build.args(["build", "--release", "--locked"]).args(BUILT);
    process::pass_through(&mut build, NOT_HELD)?;
    let folder = process::target_dir().join("release");
    let mut faults = Command::new(folder.join("faults"));
    faults
        .current_dir(process::root())
        .arg("--program")
        .arg(folder.join("tollgate"))
        .args(["--page", "docs/faults.md"])
        .args(arguments);
    process::pass_through(&mut faults, NOT_HELD)
}

/// Checks the arguments before anything is built.
fn check(arguments: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let value = match argument.as_str() {
            "--list" => continue,
            "--row" | "--runs" => arguments.next(),
            other => return Err(Failure::Usage(format!("unexpected argument `{other}`"))),
        };
        let Some(value) = value else {
            return Err(Failure::Usage(format!("{argument} needs a value")));
        };
        if argument == "--runs" && !value.parse::<u32>().is_ok_and(|runs| runs > 0) {
            return Err(Failure::Usage(format!("`{value}` is not a number of runs")));
        }
    }
    Ok(())
}
