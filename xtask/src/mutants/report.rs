//! The report of a run of the mutants.

use super::{Fate, Mutant};
use crate::Failure;
use std::fs;
use std::path::Path;

const HEAD: &str = "\
# Mutants

Does a test notice each mistake? `cargo xtask mutants` applies the mistakes of `xtask/mutants/` to a copy of the code, one at a time, and writes this
page with a test that fails. `cargo xtask mutants --list` says what each breaks.

| mutant | killed by |
| --- | --- |
";

pub(super) fn words(fate: &Fate) -> String {
    match fate {
        Fate::Killed(tests) => tests.first().map(|test| format!("`{test}`")).unwrap_or_default(),
        Fate::Hung => "the tests do not end".into(),
        Fate::Survived => "SURVIVED".into(),
        Fate::Invalid => "INVALID: it does not compile, or no test ran".into(),
    }
}

pub(super) fn table(fates: &[(&Mutant, Fate)]) -> String {
    let mut text = HEAD.to_owned();
    for (mutant, fate) in fates {
        text.push_str(&format!("| `{}` | {} |\n", mutant.name, words(fate)));
    }
    text
}

pub(super) fn write(path: &Path, fates: &[(&Mutant, Fate)]) -> Result<(), Failure> {
    fs::write(path, table(fates))
        .map_err(|why| Failure::Failed(format!("cannot write the table: {why}")))
}
