//! `cargo xtask accuracy`: runs every algorithm beside an exact log, and writes the page about it.

use crate::process;
use crate::{Failure, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "accuracy",
    summary: "compare every algorithm with an exact log and write docs/accuracy.md",
    help: "
Options:
  --seed N       the seed of the generated traffic (1)
  --sources N    how many sources (270,000)
  --requests N   about so many requests of all sources together (400,000,000)
  --limit LIMIT  the limit (100/min)
  --log FILE     the requests of an access log instead, by address; may be repeated
  --format NAME  the format of the logs; found out without it
  --print        print the table and write nothing, as with --log

Builds `testing/tollgate-accuracy` for release and runs it: some minutes for all requests. The same options give the
same page and picture, docs/pictures/accuracy.svg.",
    run,
};

const WITH_VALUE: &[&str] = &["--seed", "--sources", "--requests", "--limit", "--log", "--format"];

fn run(arguments: &[String]) -> Result<(), Failure> {
    let is_page = check(arguments)?;
    let mut command = process::cargo();
    command.args(["run", "--release", "--locked", "--quiet", "--package", "tollgate-accuracy"]);
    command.arg("--").args(arguments.iter().filter(|argument| *argument != "--print"));
    if is_page {
        command.args(["--page", "docs/accuracy.md"]);
    }
    process::pass_through(&mut command, "the comparison did not finish; see above")
}

/// Checks the arguments before anything is built. Returns whether to write the page.
fn check(arguments: &[String]) -> Result<bool, Failure> {
    let mut is_page = true;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        is_page &= argument != "--print" && argument != "--log";
        match argument.as_str() {
            "--print" => {}
            name if WITH_VALUE.contains(&name) => {
                rest.next().ok_or_else(|| Failure::Usage(format!("{name} needs a value")))?;
            }
            other => return Err(Failure::Usage(format!("unexpected argument `{other}`"))),
        }
    }
    Ok(is_page)
}
