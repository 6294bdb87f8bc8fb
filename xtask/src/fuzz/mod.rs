//! `cargo xtask fuzz`: runs every fuzz target for a while.
//!
//! The stable compiler is enough: coverage counters are an ordinary pass of its back end. A
//! sanitizer would need a nightly compiler, and would look for errors that safe code does not have.

mod options;

use crate::process::{self, Echo, Finished};
use crate::{Failure, Verb};
use options::FuzzOptions;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

pub(crate) const VERB: Verb = Verb {
    name: "fuzz",
    summary: "run every fuzz target for a while",
    help: "
Options:
  --seconds N   how long each target runs (60)
  --seed N      where chance starts, so that a run can be had again (anywhere)
  --only NAME   one target alone; may be repeated

Targets are the files of `fuzz/fuzz_targets/`, and as many run at a time as there are cores. Each starts from
its seeds in `fuzz/seeds/` with the words in `fuzz/dictionaries/`; what it finds on the way is kept in
`fuzz/corpus/`, and an input that breaks it in `fuzz/artifacts/`. Needs a C++ compiler.",
    run,
};

/// The coverage counters and comparisons that guide libFuzzer. With one codegen unit per crate, the
/// tables of counters and of positions match.
const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The longest time for one input, in seconds; then it counts as a hang.
const INPUT_SECONDS_MAX: u32 = 10;
/// The most memory for a target, including its corpus.
const MEMORY_MIB_MAX: u32 = 1024;
/// The longest input, in bytes: enough to reach every cap except that of the whole body.
const INPUT_BYTES_MAX: u32 = 8192;

fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = FuzzOptions::parse(arguments)?;
    let targets = targets(&options.only)?;
    let programs = build(&targets)?;
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let left: Mutex<VecDeque<&String>> = Mutex::new(targets.iter().collect());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let broken: Mutex<Vec<&str>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..jobs.min(targets.len()) {
            scope.spawn(|| {
                while let Some(target) = next() {
                    if !is_sound(target, &programs.join(target), &options) {
                        broken.lock().unwrap_or_else(PoisonError::into_inner).push(target);
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!("found a failure in {}", broken.join(", ")))),
    }
}

/// Builds the targets, and returns their folder.
fn build(targets: &[String]) -> Result<PathBuf, Failure> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let triple = host()?;
    let folder = process::target_dir().join("fuzz");
    let mut command = process::cargo();
    command
        .args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml"])
        // With an explicit target, build scripts and macros get no counters.
        .args(["--target", &triple])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", format!("{flags} {FLAGS}").trim());
    for target in targets {
        command.args(["--bin", target]);
    }
    match process::run(&mut command, Echo::On)?.status.success() {
        true => Ok(folder.join(triple).join("release")),
        false => Err(Failure::Failed("the fuzz targets do not build".into())),
    }
}

/// The target triple of this toolchain.
fn host() -> Result<String, Failure> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let finished = process::run(rustc.arg("-vV"), Echo::Off)?;
    let host = finished.lines.iter().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| Failure::Failed("rustc does not name its host".into()))
}

/// Runs one target and prints its summary, or all output if it failed. A run without a summary
/// tried nothing, and fails.
fn is_sound(target: &str, program: &PathBuf, options: &FuzzOptions) -> bool {
    let finished = match fuzz(target, program, options) {
        Ok(finished) => finished,
        Err(why) => {
            eprintln!("{target}: {why:?}");
            return false;
        }
    };
    let done = finished.lines.iter().rev().find(|line| line.starts_with("Done "));
    match (finished.status.success(), done) {
        (true, Some(done)) => {
            println!("{target}: {done}");
            true
        }
        _ => {
            eprintln!("{target}: {}\n{}", finished.status, finished.lines.join("\n"));
            false
        }
    }
}

fn fuzz(target: &str, program: &PathBuf, options: &FuzzOptions) -> Result<Finished, Failure> {
    let folder = process::root().join("fuzz");
    let corpus = folder.join("corpus").join(target);
    let artifacts = folder.join("artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder)
            .map_err(|why| Failure::Failed(format!("{}: {why}", folder.display())))?;
    }
    let mut command = Command::new(program);
    command
        .current_dir(&folder)
        .arg(&corpus)
        .arg(format!("-seed_inputs={}", seeds(&folder, target)?.join(",")))
        // Inputs that the run found are in memory already; reloading them would depend on timing.
        .arg("-reload=0")
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-dict=dictionaries/{target}.dict"))
        .arg(format!("-max_total_time={}", options.seconds))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"));
    if let Some(seed) = options.seed {
        command.arg(format!("-seed={seed}"));
    }
    process::run(&mut command, Echo::Off)
}

/// The initial inputs of a target, in an order that does not depend on the file system.
fn seeds(folder: &Path, target: &str) -> Result<Vec<String>, Failure> {
    let place = format!("seeds/{target}");
    let entries = fs::read_dir(folder.join(&place))
        .map_err(|_| Failure::Failed(format!("there is no folder fuzz/{place}")))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(format!("{place}/{}", entry.ok()?.file_name().to_str()?)))
        .collect();
    names.sort();
    Ok(names)
}

fn targets(only: &[String]) -> Result<Vec<String>, Failure> {
    let folder = process::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder)
        .map_err(|_| Failure::Failed("there is no folder fuzz/fuzz_targets".into()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".rs").map(String::from))
        .collect();
    names.sort();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(Failure::Usage(format!("there is no fuzz target `{unknown}`")));
    }
    names.retain(|name| only.is_empty() || only.contains(name));
    match names.is_empty() {
        false => Ok(names),
        true => Err(Failure::Failed("there are no fuzz targets".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds_and_a_dictionary() {
        let folder = process::root().join("fuzz");
        let targets = targets(&[]).unwrap();
        assert!(targets.iter().any(|target| target == "request_body"), "{targets:?}");
        for target in targets {
            let seeds = fs::read_dir(folder.join("seeds").join(&target));
            assert!(seeds.is_ok_and(|seeds| seeds.count() > 2), "{target} has no seeds");
            let words = fs::read_to_string(folder.join(format!("dictionaries/{target}.dict")));
            assert!(words.is_ok_and(|words| words.lines().count() > 10), "{target} has no words");
        }
    }

    #[test]
    fn a_target_that_does_not_exist_is_a_usage_error() {
        assert!(matches!(targets(&["headers".into()]), Err(Failure::Usage(_))));
        assert_eq!(targets(&["request_body".into()]), Ok(vec!["request_body".into()]));
    }

    #[test]
    fn a_target_that_cannot_run_or_tries_nothing_is_not_sound() {
        let options = FuzzOptions { seconds: 1, seed: None, only: Vec::new() };
        for program in ["no-such-program-anywhere", "true", "false"] {
            assert!(!is_sound("request_body", &program.into(), &options), "{program}");
        }
    }
}
