//! `cargo xtask simulate`: leases under faults, one seed after the other.

use crate::process::{self, Echo};
use crate::{Failure, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "simulate",
    summary: "run the simulation of leases over many seeds, or one again",
    help: "
Options:
  --seeds N   so many seeds, from 0 on; 10,000 without it, as the tests do
  --seed S    this one alone, with everything that happens in it

Every seed is a limit, a load and a set of faults: messages lost, late and double, processes that die, stop and
lose their connections, clocks that run fast or slow, stores that step, fail over, lose what they acknowledged, or
everything. What must hold is in
`crates/tollgate-store/src/lease/`. A seed that fails is named, and the same seed fails again.",
    run,
};

fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo();
    command.args(["test", "--package", "tollgate-store", "--test", "lease", "--", "--nocapture"]);
    command.args(["--exact", "no_seed_admits_more_than_it_may"]);
    for (name, value) in parse(arguments)? {
        command.env(name, value.to_string());
    }
    match process::run(&mut command, Echo::On)?.status.success() {
        true => Ok(()),
        false => Err(Failure::Shown),
    }
}

/// The variables that the simulation reads.
fn parse(arguments: &[String]) -> Result<Vec<(&'static str, u64)>, Failure> {
    let mut variables = Vec::new();
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let variable = match name.as_str() {
            "--seeds" => "TOLLGATE_SEEDS",
            "--seed" => "TOLLGATE_SEED",
            _ => return Err(Failure::Usage(format!("unexpected argument `{name}`"))),
        };
        let value = rest.next().and_then(|value| value.parse().ok());
        let value = value.ok_or_else(|| Failure::Usage(format!("`{name}` lacks a number")))?;
        variables.push((variable, value));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(parse(&words("--seeds 7")), Ok(vec![("TOLLGATE_SEEDS", 7)]));
        assert_eq!(parse(&words("--seed 3")), Ok(vec![("TOLLGATE_SEED", 3)]));
        for line in ["--seeds", "--seed x", "--sed 1"] {
            assert!(matches!(parse(&words(line)), Err(Failure::Usage(_))), "{line}");
        }
    }
}
