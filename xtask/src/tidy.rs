//! `cargo xtask tidy`: runs only the checks of the tree itself.

use crate::process::{self, Echo};
use crate::{Failure, Verb, no_options};

pub(crate) const VERB: Verb = Verb {
    name: "tidy",
    summary: "check the tree: layout, dependency directions, lengths, bans",
    help: "
Runs the test `xtask/tests/tidy`, which `cargo xtask test` runs as well. Lengths and a few other rules are a
ratchet: `xtask/tidy.ratchet` lists what is beyond them today, and no entry may be larger than needed.

Options:
  --write    also write the map of folders in ARCHITECTURE.md",
    run,
};

fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo();
    match arguments {
        [option] if option == "--write" => _ = command.env("TIDY_WRITE", "1"),
        _ => no_options(arguments)?,
    }
    command.args(["test", "--quiet", "--package", "xtask", "--test", "tidy"]);
    match process::run(&mut command, Echo::On)?.status.success() {
        true => Ok(()),
        false => Err(Failure::Failed("the tree is not tidy".into())),
    }
}
