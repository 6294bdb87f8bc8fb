//! TG115: `lint.allow` with a code that does not exist.
//!
//! This is not an error, so that a file written for a newer version still loads.

use super::analysis::view::LintView;
use super::{Findings, LINTS};
use crate::diagnostic::{Code, quoted};

pub(super) const CODE: &Code = &Code::new(
    "TG115",
    "allowed lint that does not exist",
    "The entry allows nothing: it is misspelt, or meant for another version.",
);

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let allow = view.compiled.file.lint.as_ref().and_then(|lint| lint.allow.as_ref());
    for code in allow.iter().flat_map(|allow| &allow.value.0) {
        if LINTS.iter().any(|lint| *lint.code == *code.value) {
            continue;
        }
        let message = format!("no lint has the code {}", quoted(code));
        let last = LINTS.last().map_or("", |lint| lint.code);
        findings.warn(code.at, message, format!("remove it; the lints are TG101 to {last}"));
    }
}
