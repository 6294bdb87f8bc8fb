//! Every algorithm is the same small folder, so its Rust and its Lua change in one diff.

use crate::ratchet::{self, Finding};
use crate::tree;
use std::collections::BTreeSet;

const FOLDER: &str = "crates/tollgate-core/src/algorithm/";

#[test]
fn each_algorithm_is_a_folder_of_three_files() {
    let rule = "an algorithm is mod.rs, <name>.lua and tests.rs, no more and no less";
    let paths: Vec<&str> = tree::files().iter().map(|file| file.path.as_str()).collect();
    assert!(paths.iter().any(|path| path.starts_with(FOLDER)), "{FOLDER} has moved");
    ratchet::assert_within("algorithm-file", rule, &findings(&paths));
}

fn findings(paths: &[&str]) -> Vec<Finding> {
    let inside = || paths.iter().filter_map(|path| path.strip_prefix(FOLDER)?.split_once('/'));
    let present: BTreeSet<String> = inside().map(|(name, file)| format!("{name}/{file}")).collect();
    let names: BTreeSet<&str> = inside().map(|(name, _)| name).collect();
    let expected: BTreeSet<String> = names
        .iter()
        .flat_map(|name| {
            ["mod.rs".into(), format!("{name}.lua"), "tests.rs".into()]
                .map(|file: String| format!("{name}/{file}"))
        })
        .collect();
    let differing = present.symmetric_difference(&expected);
    differing.map(|file| Finding { subject: format!("{FOLDER}{file}"), amount: 1 }).collect()
}

#[test]
fn a_missing_or_extra_file_is_found() {
    let found = |files: &[&str]| {
        let paths: Vec<String> = files.iter().map(|file| format!("{FOLDER}{file}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        findings(&paths).into_iter().map(|finding| finding.subject).collect::<Vec<_>>()
    };
    let none: [String; 0] = [];
    assert_eq!(found(&["mod.rs", "gcra/mod.rs", "gcra/gcra.lua", "gcra/tests.rs"]), none);
    assert_eq!(found(&["gcra/mod.rs", "gcra/tests.rs"]), [format!("{FOLDER}gcra/gcra.lua")]);
    let extra = found(&["gcra/mod.rs", "gcra/gcra.lua", "gcra/tests.rs", "gcra/helpers.rs"]);
    assert_eq!(extra, [format!("{FOLDER}gcra/helpers.rs")]);
}
