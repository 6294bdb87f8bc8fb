//! The README's commands and its policy.

use super::{Page, Reader};
use crate::serve::process::Folder;

const README: &str = include_str!("../../../../../README.md");

fn page() -> Page {
    Page::new(README, &["3000", "8080", "8081", "8090"])
}

#[test]
fn the_first_minute() {
    let page = page();
    let folder = Folder::new("readme");
    let mut reader = Reader::new(&folder);
    let blocks = page.blocks("console", "The first minute");
    let [start, calls] = blocks[..] else { panic!("{blocks:#?}") };
    let mut lines = start.lines();
    assert_eq!(lines.next(), Some("$ cargo run --release"));
    let shown: Vec<&str> = lines.filter(|line| *line != "...").collect();
    let listen = shown.iter().map(|line| {
        let (front, address) = line.strip_prefix("listening ").unwrap().split_once(' ').unwrap();
        format!("--listen {front}={address}")
    });
    let listen = listen.collect::<Vec<_>>().join(" ");
    reader.serve(&listen, &shown);
    // A busy machine may take a second between the two calls.
    reader.follow(&calls.replace("720", "7..."));
    let defaults = reader.sh("tollgate serve --print-default-config > tollgate.yaml").status();
    assert!(page.0.contains("`tollgate serve --print-default-config > tollgate.yaml`"));
    assert!(defaults.unwrap().success());
    reader.follow("$ tollgate check tollgate.yaml\n0 errors, 0 warnings in 1 file");
}

/// The picture at the top shows this policy.
#[test]
fn the_policy() {
    let heading = "A policy with tiers and login";
    let original = Page(README.into());
    let drawn = include_str!("../../../../../docs/pictures/policy.yaml");
    assert_eq!(original.blocks("yaml", heading), [drawn.trim_end()]);
    let page = page();
    let folder = Folder::with("readme-policy", page.blocks("yaml", heading)[0]);
    let mut reader = Reader::new(&folder);
    let blocks = page.blocks("console", heading);
    assert_eq!(blocks.len(), 1);
    reader.follow(blocks[0]);
}
