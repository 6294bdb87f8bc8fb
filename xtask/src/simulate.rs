//! `cargo xtask simulate`: runs the simulation of leases under faults, one seed after the other.

use crate::process::{self, Echo};
use crate::{Failure, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "simulate",
    summary: "run the simulation of leases over many seeds, or one again; draw its pictures",
    help: "
Options:
  --seeds N   so many seeds; 10,000 without it, as the tests do
  --first S   from this seed on; 0 without it
  --seed S    this one alone, with everything that happens in it
  --picture   draw docs/pictures/leases.svg instead, a limit whose nodes die, and write docs/leases.md's table of lifetimes
  --scale     simulate a thousand nodes and a million keys instead, for some minutes, and write docs/scaling.md's table,
              docs/pictures/scaling.csv and scaling.svg

Every seed is a limit, a load and a set of faults: messages lost, late and double, processes that die, stop, run late and
lose their connections, clocks that run fast or slow, stores that step, fail over, lose what they acknowledged, or
everything. What must hold is in
`crates/tollgate-store/src/lease/`. Seeds that fail are named, and the same seed fails again.",
    run,
};

const PICTURE: &[&str] =
    &["picture::the_picture_is_what_the_simulation_does", "scale::lifetimes_do_what_the_page_says"];
const SCALE: &[&str] = &["scale::the_page_has_what_the_protocol_does"];

/// The tests to run, and their environment variables.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    tests: &'static [&'static str],
    variables: Vec<(&'static str, u64)>,
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let plan = parse(arguments)?;
    let mut command = process::cargo();
    command.args(["test", "--package", "tollgate-store", "--test", "lease", "--", "--nocapture"]);
    command.arg("--exact").args(plan.tests);
    for (name, value) in plan.variables {
        command.env(name, value.to_string());
    }
    match process::run(&mut command, Echo::On)?.status.success() {
        true => Ok(()),
        false => Err(Failure::Shown),
    }
}

fn parse(arguments: &[String]) -> Result<Plan, Failure> {
    let writes = |tests| Ok(Plan { tests, variables: vec![("TOLLGATE_WRITE", 1)] });
    match arguments {
        [one] if one == "--picture" => return writes(PICTURE),
        [one] if one == "--scale" => return writes(SCALE),
        _ => {}
    }
    let mut variables = Vec::new();
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let variable = match name.as_str() {
            "--seeds" => "TOLLGATE_SEEDS",
            "--first" => "TOLLGATE_FIRST_SEED",
            "--seed" => "TOLLGATE_SEED",
            _ => return Err(Failure::Usage(format!("unexpected argument `{name}`"))),
        };
        let value = rest.next().and_then(|value| value.parse().ok());
        let value = value.ok_or_else(|| Failure::Usage(format!("`{name}` lacks a number")))?;
        variables.push((variable, value));
    }
    Ok(Plan { tests: &["no_seed_admits_more_than_it_may"], variables })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        let variables = |line: &str| parse(&words(line)).map(|plan| plan.variables);
        assert_eq!(variables("--seeds 7"), Ok(vec![("TOLLGATE_SEEDS", 7)]));
        assert_eq!(variables("--seed 3"), Ok(vec![("TOLLGATE_SEED", 3)]));
        let range = vec![("TOLLGATE_FIRST_SEED", 9), ("TOLLGATE_SEEDS", 7)];
        assert_eq!(variables("--first 9 --seeds 7"), Ok(range));
        assert_eq!(variables("--scale"), variables("--picture"));
        assert_ne!(parse(&words("--scale")), parse(&words("--picture")));
        for line in ["--seeds", "--seed x", "--sed 1", "--scale 1", "--seed 1 --picture"] {
            assert!(matches!(parse(&words(line)), Err(Failure::Usage(_))), "{line}");
        }
    }
}
