//! One word, one meaning: a type name occurs once in a crate.

use crate::ratchet::{self, Finding};
use crate::tree::{self, File};
use std::collections::BTreeMap;

/// Names that an extension folder gives to each of its members: a folder, and a name.
const FIXED: &[(&str, &str)] = &[("crates/tollgate-core/src/algorithm/", "State")];

#[test]
fn a_type_name_occurs_once_in_a_crate() {
    let rule = "a type name occurs once in a crate: say which one it is";
    ratchet::assert_within("type-name", rule, &repeated(tree::files()));
}

/// Each name with more than one definition, as `crate:Name`.
fn repeated(files: &[File]) -> Vec<Finding> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_ours()) {
        for name in type_names(&file.code) {
            let fixed =
                |(folder, known): &&(&str, &str)| file.path.starts_with(folder) && *known == name;
            if FIXED.iter().find(fixed).is_none() {
                *counts.entry(format!("{}:{name}", unit(&file.path))).or_default() += 1;
            }
        }
    }
    let repeated = counts.into_iter().filter(|(_, amount)| *amount > 1);
    repeated.map(|(subject, amount)| Finding { subject, amount }).collect()
}

/// The compilation unit of a file: the folder of a library or program, or one test binary.
fn unit(path: &str) -> &str {
    for folder in ["/src/", "/tests/", "/examples/"] {
        if let Some(at) = path.find(folder) {
            let inside = at + folder.len();
            let own = if folder == "/src/" { 0 } else { path[inside..].find('/').unwrap_or(0) };
            return &path[..inside + own];
        }
    }
    path
}

/// The structs, enums, unions, traits and aliases that `code` defines, without associated types.
fn type_names(code: &str) -> Vec<&str> {
    let definition = |line: &'_ str| -> Option<usize> {
        let item = line.trim_start();
        let mut words = item.split_whitespace();
        let mut word = words.next()?;
        while word.starts_with("pub") || word == "unsafe" || word == "in" || word.ends_with(')') {
            word = words.next()?;
        }
        let alias = word == "type" && item.len() == line.len();
        let found = alias || matches!(word, "struct" | "enum" | "union" | "trait");
        let name = words.next().filter(|_| found)?;
        Some(name.as_ptr() as usize - line.as_ptr() as usize)
    };
    let of_name = |c: char| c.is_alphanumeric() || c == '_';
    let name =
        |line: &str, at: usize| line[at..].find(|c| !of_name(c)).map_or(line.len(), |n| at + n);
    code.lines()
        .filter_map(|line| definition(line).map(|at| &line[at..name(line, at)]))
        .filter(|name| name.starts_with(|c: char| c.is_uppercase()))
        .collect()
}

#[test]
fn a_repeated_name_is_found() {
    let found = |files: &[(&str, &str)]| {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        repeated(&files).into_iter().map(|finding| finding.subject).collect::<Vec<_>>()
    };
    let (a, b) = ("crates/x/src/a.rs", "crates/x/src/b.rs");
    assert_eq!(found(&[(a, "struct S;"), (b, "pub(crate) enum S<T> {}")]), ["crates/x/src/:S"]);
    assert_eq!(found(&[(a, "pub(in crate::a) struct S(u8);"), (b, "trait S {}")]).len(), 1);
    assert_eq!(found(&[(a, "type S = u8;"), (b, "pub type S = u8;")]).len(), 1);
    assert!(found(&[(a, "impl T for A {\n    type S = u8;\n}"), (b, "struct S;")]).is_empty());
    assert!(found(&[(a, "// struct S;"), (b, "struct S;")]).is_empty());
    assert!(found(&[(a, "struct S;"), ("crates/y/src/a.rs", "struct S;")]).is_empty());
    let tests = ["crates/x/tests/it/a.rs", "crates/x/tests/loom/a.rs"];
    assert!(
        found(&[(a, "struct S;"), (tests[0], "struct S;"), (tests[1], "struct S;")]).is_empty()
    );
    let folders = FIXED[0].0;
    let (c, d) = (format!("{folders}a/mod.rs"), format!("{folders}b/mod.rs"));
    assert!(found(&[(&c, "struct State;"), (&d, "struct State;")]).is_empty());
    assert_eq!(found(&[(&c, "struct Store;"), (&d, "struct Store;")]).len(), 1);
}
