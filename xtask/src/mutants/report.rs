//! The report of a run of the mutants.

use super::{Fate, Mutant};
use crate::Failure;
use std::fs;
use std::path::Path;

const HEAD: &str = "\
# Mutants

`cargo xtask mutants` writes this page. It applies each mistake of `xtask/mutants/` to a copy of the code and lists the tests
that fail. If no test fails, the command fails. The numbers are those of the properties in `crates/tollgate-core/tests/it/properties/`.

| mutant | property | what it breaks | killed by |
| --- | --- | --- | --- |
";

/// The most names shown for a mutant.
const NAMES_MAX: usize = 3;

pub(super) fn words(fate: &Fate) -> String {
    match fate {
        Fate::Killed(tests) => {
            let names: Vec<String> =
                tests.iter().take(NAMES_MAX).map(|test| format!("`{test}`")).collect();
            names.join(", ")
        }
        Fate::Hung => "the tests do not end".into(),
        Fate::Survived => "SURVIVED".into(),
        Fate::Invalid => "INVALID: it does not compile, or no test ran".into(),
    }
}

pub(super) fn table(fates: &[(&Mutant, Fate)]) -> String {
    let mut text = HEAD.to_owned();
    for (mutant, fate) in fates {
        let Mutant { name, property, breaks, .. } = mutant;
        text.push_str(&format!("| `{name}` | {property} | {breaks} | {} |\n", words(fate)));
    }
    text
}

pub(super) fn write(path: &Path, fates: &[(&Mutant, Fate)]) -> Result<(), Failure> {
    fs::write(path, table(fates))
        .map_err(|why| Failure::Failed(format!("cannot write the table: {why}")))
}
