//! `cargo xtask fuzz`: every fuzz target for a while.

use crate::process::{self, Echo};
use crate::{Failure, Verb};
use std::fs;
use std::process::Command;

pub(crate) const VERB: Verb = Verb {
    name: "fuzz",
    summary: "run every fuzz target for a while",
    help: "
Options:
  --seconds N   how long each target runs (60)
  --only NAME   one target alone

Targets are the files of `fuzz/fuzz_targets/`. Needs cargo-fuzz (`cargo install --locked cargo-fuzz`) and a
nightly toolchain.",
    run,
};

#[derive(Debug, PartialEq, Eq)]
struct Options {
    seconds: u64,
    only: Option<String>,
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = parse(arguments)?;
    let targets = targets(options.only.as_deref())?;
    if !process::is_installed("cargo-fuzz") {
        return Err(Failure::Failed(
            "cargo-fuzz is not installed; `cargo install --locked cargo-fuzz` brings it".into(),
        ));
    }
    let mut broken = Vec::new();
    for target in targets {
        let corpus = process::root().join("fuzz/corpus").join(&target);
        fs::create_dir_all(&corpus)
            .map_err(|why| Failure::Failed(format!("{}: {why}", corpus.display())))?;
        if !process::run(&mut command(&target, options.seconds), Echo::On)?.status.success() {
            broken.push(target);
        }
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!("found a failure in {}", broken.join(", ")))),
    }
}

/// Starts from the committed seeds where a target has some; what it finds goes to the corpus beside them.
fn command(target: &str, seconds: u64) -> Command {
    let root = process::root();
    // `cargo` itself, not the one that runs this: only the rustup proxy understands `+nightly`.
    let mut command = Command::new("cargo");
    command.current_dir(&root).args(["+nightly", "fuzz", "run", target]);
    let seeds = format!("fuzz/seeds/{target}");
    if root.join(&seeds).is_dir() {
        command.args([format!("fuzz/corpus/{target}"), seeds]);
    }
    command.args(["--", &format!("-max_total_time={seconds}")]);
    command
}

fn targets(only: Option<&str>) -> Result<Vec<String>, Failure> {
    let folder = process::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder)
        .map_err(|_| Failure::Failed("there is no folder fuzz/fuzz_targets".into()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".rs").map(String::from))
        .filter(|name| only.is_none_or(|only| only == name))
        .collect();
    names.sort();
    match (names.is_empty(), only) {
        (false, _) => Ok(names),
        (true, Some(only)) => Err(Failure::Usage(format!("there is no fuzz target `{only}`"))),
        (true, None) => Err(Failure::Failed("there are no fuzz targets".into())),
    }
}

fn parse(arguments: &[String]) -> Result<Options, Failure> {
    let mut options = Options { seconds: 60, only: None };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().ok_or_else(|| Failure::Usage(format!("`{name}` lacks a value")))?;
        match name.as_str() {
            "--only" => options.only = Some(value.clone()),
            "--seconds" => {
                options.seconds = value
                    .parse()
                    .map_err(|_| Failure::Usage(format!("`{value}` is not a number of seconds")))?;
            }
            _ => return Err(Failure::Usage(format!("unexpected argument `{name}`"))),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options() {
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(parse(&words("")), Ok(Options { seconds: 60, only: None }));
        assert_eq!(
            parse(&words("--only headers --seconds 5")),
            Ok(Options { seconds: 5, only: Some("headers".into()) })
        );
        assert!(parse(&words("--seconds")).is_err());
        assert!(parse(&words("--forever yes")).is_err());
    }
}
