//! The core builds without the standard library. Tests cannot install another target everywhere. So
//! this checks the attribute, that no path leads into `std`, and that no dependency needs it.

use crate::tree::{self, File, has_word};
use std::process::Command;

const CORE: &str = "crates/tollgate-core/src/";

/// Dependencies that are known to build without `std`.
const ALLOWED: &[&str] = &["tollgate-core"];

#[test]
fn the_core_does_not_use_the_standard_library() {
    let core = tree::files().iter().filter(|file| file.path.starts_with(CORE));
    tree::assert_none(&core.flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn the_core_depends_on_nothing_that_does() {
    let output = Command::new(env!("CARGO"))
        .current_dir(tree::root())
        .args(["tree", "--package", "tollgate-core", "--edges", "normal,features"])
        .args(["--all-features", "--prefix", "none", "--locked"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    tree::assert_none(&foreign(&String::from_utf8_lossy(&output.stdout)));
}

fn complaints(file: &File) -> Vec<String> {
    if !file.ships() {
        return Vec::new();
    }
    let mut found = Vec::new();
    if file.path == format!("{CORE}lib.rs") && !file.code.contains("#![no_std]") {
        found.push(format!("{}: lacks #![no_std]", file.path));
    }
    found.extend(file.complaints("use `core` or `alloc`", |line| has_word(line, "std::")));
    // The line that tests need. Without its condition, the crate would always need `std`.
    let mut before = "";
    for line in file.code.lines().map(str::trim) {
        if line.ends_with("extern crate std;") && before != "#[cfg(test)]" {
            found.push(format!("{}: `extern crate std` outside tests", file.path));
        }
        before = line;
    }
    found
}

/// Lines are `name v1.2.3 (...)` for packages and `name feature "x"` for their features.
fn foreign(tree: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let name = line.split(' ').next().unwrap_or_default();
        if !ALLOWED.contains(&name) {
            found.push(format!("{line}: is it no_std? then add it to the list in no_std.rs"));
        } else if line.contains("feature \"std\"") {
            found.push(format!("{line}: the core must not ask for it"));
        }
    }
    found
}

#[test]
fn the_standard_library_is_found() {
    let found = |path, text| complaints(&File::new(path, text)).len();
    let lib = "crates/tollgate-core/src/lib.rs";
    assert_eq!(found(lib, "#![no_std]\n#[cfg(test)]\nextern crate std;"), 0);
    assert_eq!(found(lib, "#![cfg_attr(not(test), no_std)]"), 1);
    assert_eq!(found(lib, "#![no_std]\nextern crate std;"), 1);
    assert_eq!(found("crates/tollgate-core/src/a.rs", "use std::fmt;"), 1);
    assert_eq!(found("crates/tollgate-core/src/a.rs", "use core::fmt; // std::fmt"), 0);
    assert_eq!(found("crates/tollgate-core/src/a/tests.rs", "use std::vec;"), 0);
}

#[test]
fn a_foreign_dependency_is_found() {
    assert_eq!(foreign("tollgate-core v0.1.0 (crates/tollgate-core)\n"), Vec::<String>::new());
    assert_eq!(foreign("tollgate-core v0.1.0\nregex v1.0.0\n").len(), 1);
    assert_eq!(foreign("tollgate-core feature \"std\"\n").len(), 1);
}
