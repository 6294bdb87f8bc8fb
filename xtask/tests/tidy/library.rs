//! The library for new users: few names at its root, and few dependencies.

use crate::tree;
use std::process::Command;

/// The most names at the root of `tollgate`, with every feature.
const ROOT_NAMES_MAX: usize = 18;
/// The most crates of `cargo add tollgate`, including itself.
const CRATES_MAX: usize = 25;
/// Prefixes of crate names that a limiter in memory must not depend on.
const FEATURES_ONLY: &[&str] = &["tokio", "redis", "serde", "schemars", "jiff", "tollgate-policy"];

#[test]
fn the_root_of_the_library_has_few_names() {
    let file = tree::files().iter().find(|file| file.path == "crates/tollgate/src/lib.rs");
    let names = root_names(&file.expect("the library has a root").code);
    assert!(names.len() <= ROOT_NAMES_MAX, "{} names at the root: {names:?}", names.len());
    assert!(names.contains(&"Limiter".to_owned()), "{names:?}");
}

/// The names that `pub mod` and `pub use` define.
fn root_names(code: &str) -> Vec<String> {
    let public = |item: &str| {
        let start = item.rfind("pub ")?;
        let item = item[start..].split_whitespace().collect::<Vec<_>>().join(" ");
        item.strip_prefix("pub mod ").or(item.strip_prefix("pub use ")).map(str::to_owned)
    };
    let last = |path: &str| {
        let name = path.rsplit(" as ").next().unwrap_or(path);
        name.rsplit("::").next().unwrap_or(name).trim().to_owned()
    };
    let names = |item: String| match item.split_once('{') {
        Some((_, group)) => {
            let group = group.trim_end_matches('}').split(',').map(last).collect::<Vec<_>>();
            group.into_iter().filter(|name| !name.is_empty()).collect()
        }
        None => vec![last(&item)],
    };
    code.split(';').filter_map(public).flat_map(names).collect()
}

#[test]
fn a_bare_limiter_has_few_crates() {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--package", "tollgate", "--edges", "normal", "--prefix", "none"]);
    command.args(["--no-dedupe", "--format", "{p}", "--offline", "--manifest-path"]);
    command.arg(tree::root().join("Cargo.toml"));
    let output = command.output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut crates: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    crates.sort_unstable();
    crates.dedup();
    assert!(crates.contains(&"tollgate-store"), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(crates.len() <= CRATES_MAX, "{} crates: {crates:?}", crates.len());
    let heavy = |name: &&&str| FEATURES_ONLY.iter().any(|word| name.starts_with(word));
    assert_eq!(crates.iter().find(heavy), None, "this belongs to a feature");
}

#[test]
fn names_are_counted_as_users_see_them() {
    let code = "mod a;\npub mod b;\n#[cfg(x)]\npub use c::{D, E as F};\npub use g as h;\nuse i::J;";
    assert_eq!(root_names(code), ["b", "D", "F", "h"]);
}
