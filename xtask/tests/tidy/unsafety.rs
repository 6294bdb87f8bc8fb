//! Only one folder contains `unsafe`.

use crate::ratchet::{self, Finding};
use crate::tree::{self, File, has_word};

const FOLDER: &str = "crates/tollgate-store/src/raw/";

#[test]
fn one_folder_has_unsafe_code() {
    let rule = format!("unsafe code belongs in {FOLDER}");
    ratchet::assert_within("unsafe", &rule, &findings(tree::files()));
}

fn findings(files: &[File]) -> Vec<Finding> {
    let outside = files.iter().filter(|file| file.is_ours() && !file.path.starts_with(FOLDER));
    outside
        .map(|file| Finding {
            subject: file.path.clone(),
            amount: file.complaints("", |line| has_word(line, "unsafe")).len(),
        })
        .filter(|finding| finding.amount > 0)
        .collect()
}

#[test]
fn unsafe_elsewhere_is_found() {
    let found = |path, text| findings(&[File::new(path, text)]).len();
    let code = "let x = unsafe { *p };";
    assert_eq!(found("crates/tollgate-store/src/memory/mod.rs", code), 1);
    assert_eq!(found("crates/tollgate-store/tests/it/main.rs", code), 1);
    assert_eq!(found("crates/tollgate-store/src/raw/prefetch.rs", code), 0);
    assert_eq!(found("crates/tollgate-store/src/memory/mod.rs", "#![deny(unsafe_code)]"), 0);
}
