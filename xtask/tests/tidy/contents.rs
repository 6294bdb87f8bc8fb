//! `lib.rs` is a table of contents: documentation, `mod`, `use`.

use crate::ratchet::{self, Finding};
use crate::tree::{self, File};

#[test]
fn each_lib_is_a_table_of_contents() {
    let rule = "lib.rs has documentation, `mod` and `use` only";
    ratchet::assert_within("lib-item", rule, &findings(tree::files()));
}

fn findings(files: &[File]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.ships() && file.path.ends_with("/src/lib.rs"))
        .map(|file| Finding { subject: file.path.clone(), amount: other_items(&file.code).len() })
        .filter(|finding| finding.amount > 0)
        .collect()
}

/// The items that do not belong in a `lib.rs`.
fn other_items(code: &str) -> Vec<String> {
    let mut others = Vec::new();
    for item in items(code) {
        let words: Vec<&str> = item.split_whitespace().collect();
        let visible = words.first().is_some_and(|word| word.starts_with("pub"));
        let kind = words.get(usize::from(visible)).copied().unwrap_or_default();
        let inline = kind == "mod" && item.contains('{');
        if inline || !matches!(kind, "mod" | "use" | "extern") {
            others.push(item);
        }
    }
    others
}

/// The top-level items, without their attributes.
fn items(code: &str) -> Vec<String> {
    let (mut items, mut item) = (Vec::new(), String::new());
    let mut depth = 0_usize;
    for c in without_attributes(code).chars() {
        item.push(c);
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // The braces of a `use` do not end it.
        let is_use = item.split_whitespace().take(2).any(|word| word == "use");
        if depth == 0 && (c == ';' || (c == '}' && !is_use)) {
            items.push(std::mem::take(&mut item).trim().to_owned());
        }
    }
    items
}

fn without_attributes(code: &str) -> String {
    let (mut kept, mut depth) = (String::new(), 0_usize);
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '#' if depth == 0 && matches!(chars.peek(), Some('!' | '[')) => {
                chars.next_if_eq(&'!');
                chars.next_if_eq(&'[');
                depth = 1;
            }
            '[' if depth > 0 => depth += 1,
            ']' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            _ => kept.push(c),
        }
    }
    kept
}

#[test]
fn anything_else_is_found() {
    let others = |text: &str| other_items(&File::new("crates/x/src/lib.rs", text).code);
    let fine = "//! Docs.\n#![no_std]\n#![doc = include_str!(\"a.md\")]\nextern crate alloc;\n\
        #[cfg(test)]\nmod a;\npub mod b;\npub use a::{B, C};\npub(crate) use b::D;\n";
    assert_eq!(others(fine), Vec::<String>::new());
    assert_eq!(others(&format!("{fine}pub const X: [u8; 2] = [0, 1];")).len(), 1);
    assert_eq!(others(&format!("{fine}fn f() {{ g(); }}\nmod c;")).len(), 1);
    assert_eq!(others(&format!("{fine}#[derive(Clone)]\npub struct S {{ a: u8 }}")).len(), 1);
    assert_eq!(others("mod tests { fn f() {} }").len(), 1);
    assert_eq!(others("macro_rules! m { () => {}; }").len(), 1);
}
