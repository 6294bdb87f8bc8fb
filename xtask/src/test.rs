//! `cargo xtask test`: runs all automatic checks, and prints the counts at the end.

use crate::counts::Counts;
use crate::process::{self, Echo};
use crate::{Failure, Verb, needs, no_options};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

pub(crate) const VERB: Verb = Verb {
    name: "test",
    summary: "install what is missing and run every test",
    help: "
Installs the packages of `xtask/needs.txt` whose programs are missing, then runs the unit and integration
tests (with cargo-nextest where it is installed), the examples in the documentation, and the loom models of
the memory store. The last line is `N passed, N failed, N skipped` over all of them; any failure makes the
exit code 1. With CI=true a program that cannot be installed is a failure too.

`bench/` and `fuzz/` are workspaces of their own and are not built.",
    run,
};

fn run(arguments: &[String]) -> Result<(), Failure> {
    no_options(arguments)?;
    let mut counts = step("needed programs", needs::install);
    counts += step("tests", tests);
    counts += step("documentation examples", doctests);
    counts += step("loom models", loom);
    println!("\n{counts}");
    match counts.failed {
        0 => Ok(()),
        // The counts are the last line, so no message may follow.
        _ => Err(Failure::Shown),
    }
}

/// Runs one part under a heading, and prints its duration. A part that cannot start counts as a
/// failure, so that the others still run and the counts still come last.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore may look at the clock to say how long it took"
)]
fn step(name: &str, run: fn() -> Result<Counts, Failure>) -> Counts {
    println!("\n== {name}");
    let start = Instant::now();
    let counts = run().unwrap_or_else(|why| {
        eprintln!("{why:?}");
        Counts::ONE_FAILED
    });
    println!("== {name}: {counts} ({} s)", start.elapsed().as_secs());
    counts
}

fn tests() -> Result<Counts, Failure> {
    let mut command = process::cargo();
    if process::is_installed("cargo-nextest") {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--color", "never"]);
        return counted(&mut command, Counts::of_nextest);
    }
    println!("cargo-nextest is not installed: using cargo test");
    command.args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    counted(&mut command, Counts::of_libtest)
}

fn doctests() -> Result<Counts, Failure> {
    let mut command = process::cargo();
    command.args(["test", "--workspace", "--no-fail-fast", "--doc"]);
    counted(&mut command, Counts::of_libtest)
}

/// Compiles the store with loom's locks and atomics, and runs only the models.
fn loom() -> Result<Counts, Failure> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut command = process::cargo();
    command
        .args(["test", "--package", "tollgate-store", "--release", "--lib"])
        // Other flags in the same folder would rebuild everything twice in a run.
        .arg("--target-dir")
        .arg(Path::new(&process::target_dir()).join("loom"))
        .args(["--", "memory::tests::", "raw::lock::tests::", "raw::pin::tests::"])
        .env("RUSTFLAGS", format!("{flags} --cfg loom").trim())
        // Linking with LTO takes longer than the models.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    counted(&mut command, Counts::of_libtest)
}

/// Runs one test runner. A runner that fails without a failed test (it did not compile) counts as
/// one failure. So does a runner that succeeds without counts, since its output is no longer
/// understood.
fn counted(command: &mut Command, parse: fn(&str) -> Option<Counts>) -> Result<Counts, Failure> {
    let finished = process::run(command, Echo::On)?;
    Ok(judge(finished.status.success(), Counts::total(&finished.lines, parse)))
}

fn judge(success: bool, counts: Option<Counts>) -> Counts {
    match counts.filter(|counts| counts.passed + counts.failed > 0) {
        Some(counts) if success == (counts.failed == 0) => counts,
        Some(mut counts) => {
            counts += Counts::ONE_FAILED;
            counts
        }
        None => Counts::ONE_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_fails_or_counts_nothing_is_a_failure() {
        let passed = Counts { passed: 3, failed: 0, skipped: 0 };
        let failed = Counts { passed: 3, failed: 2, skipped: 0 };
        assert_eq!(judge(true, Some(passed)), passed);
        assert_eq!(judge(false, Some(failed)), failed);
        assert_eq!(judge(false, Some(passed)).failed, 1, "it did not compile");
        assert_eq!(judge(true, None).failed, 1, "nothing was counted");
        assert_eq!(judge(false, None).failed, 1);
        let none = Counts { passed: 0, failed: 0, skipped: 0 };
        assert_eq!(judge(true, Some(none)).failed, 1, "the filter matches no test any more");
    }

    #[test]
    fn a_step_that_cannot_start_is_a_failure() {
        let counts = step("missing", || Err(Failure::Failed("no such program".into())));
        assert_eq!(counts, Counts::ONE_FAILED);
    }
}
