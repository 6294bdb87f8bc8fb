//! User input must not be able to cause a panic.

use crate::ratchet::{self, Finding};
use crate::tree::{self, File};

#[test]
fn shipped_code_does_not_unwrap() {
    let rule = "return an error, or say with `expect` why it cannot fail";
    ratchet::assert_within("unwrap", rule, &findings(tree::files()));
}

fn findings(files: &[File]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.ships())
        .map(|file| Finding {
            subject: file.path.clone(),
            amount: file.code.matches(".unwrap()").count(),
        })
        .filter(|finding| finding.amount > 0)
        .collect()
}

#[test]
fn an_unwrap_is_found() {
    let found = |path, text| findings(&[File::new(path, text)]).len();
    assert_eq!(found("crates/x/src/a.rs", "let y = x.unwrap();"), 1);
    assert_eq!(found("crates/x/src/a.rs", "let y = x.unwrap_or(0);"), 0);
    assert_eq!(found("crates/x/src/a/tests.rs", "let y = x.unwrap();"), 0);
}
