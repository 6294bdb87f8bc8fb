//! The map in ARCHITECTURE.md: a line for each folder of the crates, with the first sentence of its
//! module documentation.

use crate::ratchet::{self, Finding};
use crate::tree::{self, File};
use std::collections::BTreeMap;
use std::fs;

const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- map: written by `cargo xtask tidy --write` -->\n";
const END: &str = "<!-- end of map -->\n";
const FILES_MAX: usize = 12;
/// Folders with one file for each implementation of an extension point.
const EXTENSIONS: &[&str] = &["crates/tollgate-policy/src/lint/"];

#[test]
fn the_map_shows_the_folders_as_they_are() {
    let (map, missing) = map(tree::files());
    tree::assert_none(&missing);
    let page = tree::files().iter().find(|file| file.path == PAGE).expect("the page exists");
    let (before, rest) = page.text.split_once(BEGIN).expect("the page has a map");
    let (_, after) = rest.split_once(END).expect("the map has an end");
    let drawn = format!("{before}{BEGIN}{map}{END}{after}");
    if std::env::var_os("TIDY_WRITE").is_some() {
        fs::write(tree::root().join(PAGE), drawn).expect("the page can be written");
    } else {
        assert!(drawn == page.text, "the map is out of date: run `cargo xtask tidy --write`");
    }
}

#[test]
fn folders_have_few_files() {
    let rule = "no folder has over 12 files beside mod.rs: make two";
    ratchet::assert_within("folder-files", rule, &crowded(tree::files()));
}

/// The folders of shipped code, with their `mod.rs`, `lib.rs` or `main.rs`.
fn folders(files: &[File]) -> BTreeMap<&str, Vec<&File>> {
    let mut folders: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.ships() && file.path.contains("/src/")) {
        let (folder, _) = file.path.rsplit_once('/').expect("it is in a folder");
        folders.entry(folder).or_default().push(file);
    }
    folders
}

fn is_root(file: &File) -> bool {
    ["/mod.rs", "/lib.rs", "/main.rs"].iter().any(|name| file.path.ends_with(name))
}

/// The map, and the folders without a first sentence.
fn map(files: &[File]) -> (String, Vec<String>) {
    let (mut map, mut missing) = ("```text\n".to_owned(), Vec::new());
    for (folder, members) in folders(files) {
        let root = members.iter().find(|file| is_root(file));
        let Some(sentence) = root.and_then(|file| first_sentence(&file.text)) else {
            missing.push(format!("{folder}: has no mod.rs that begins with `//! ` and a sentence"));
            continue;
        };
        let inside = folder.strip_prefix("crates/").unwrap_or(folder);
        let (name, depth) = match inside.split_once("/src") {
            Some((name, "")) => (name.to_owned(), 0),
            _ => (inside.rsplit('/').next().unwrap_or_default().to_owned() + "/", depth(inside)),
        };
        let place = format!("{}{name}", "  ".repeat(depth));
        map.push_str(&format!("{place:<28} {sentence}\n"));
    }
    map.push_str("```\n");
    (map, missing)
}

/// The depth of the folder below `src`.
fn depth(folder: &str) -> usize {
    folder.split_once("/src/").map_or(0, |(_, inside)| inside.split('/').count())
}

/// The first sentence of a module's documentation, on one line and without links.
fn first_sentence(text: &str) -> Option<String> {
    let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
    let paragraph = lines.collect::<Vec<_>>().join(" ").replace(['`', '[', ']'], "");
    let end = paragraph.find(". ").unwrap_or(paragraph.trim_end_matches('.').len());
    Some(paragraph[..end].to_owned()).filter(|sentence| !sentence.is_empty())
}

fn crowded(files: &[File]) -> Vec<Finding> {
    let amount = |members: &[&File]| members.iter().filter(|file| !is_root(file)).count();
    let all = folders(files).into_iter();
    let counts = all.map(|(folder, members)| Finding {
        subject: format!("{folder}/"),
        amount: amount(&members),
    });
    let beyond =
        |found: &Finding| found.amount > FILES_MAX && !EXTENSIONS.contains(&found.subject.as_str());
    counts.filter(beyond).collect()
}

#[test]
fn a_folder_is_a_line() {
    let file = |path: &str, text: &str| File::new(path, text);
    let files = [
        file("crates/x/src/lib.rs", "//! All of it. And more.\n"),
        file("crates/x/src/a/mod.rs", "//! One [`Thing`]\n//! on two lines.\n//!\n//! More.\n"),
        file("crates/x/src/a/b.rs", ""),
        file("crates/x/src/a/tests/c.rs", ""),
    ];
    let (drawn, missing) = map(&files);
    let rows: Vec<&str> = drawn.lines().collect();
    assert_eq!(rows[1], format!("{:<28} All of it", "x"));
    assert_eq!(rows[2], format!("{:<28} One Thing on two lines", "  a/"));
    assert_eq!((rows.len(), missing.len()), (4, 0));
    let (_, missing) = map(&[file("crates/x/src/a/b.rs", "//! A file.\n")]);
    assert_eq!(missing.len(), 1, "a folder without mod.rs");
}

#[test]
fn a_crowded_folder_is_found() {
    let files = |folder: &str, amount: usize| -> Vec<File> {
        let members = (0..amount).map(|at| File::new(&format!("{folder}f{at}.rs"), ""));
        members.chain([File::new(&format!("{folder}mod.rs"), "")]).collect()
    };
    assert_eq!(crowded(&files("crates/x/src/a/", FILES_MAX)), []);
    assert_eq!(crowded(&files("crates/x/src/a/", FILES_MAX + 1))[0].amount, FILES_MAX + 1);
    assert_eq!(crowded(&files(EXTENSIONS[0], FILES_MAX + 1)), []);
}
