//! Text that must never be committed.

use crate::tree::{self, File, has_word};

/// Banned in code: the text, and the reason.
const CODE: &[(&str, &str)] = &[
    ("todo!", "finish it, or leave it out"),
    ("unimplemented!", "finish it, or leave it out"),
    ("dbg!", "left over from debugging"),
];

/// Banned in any file. Concatenated here, so that this file passes its own check.
const TEXT: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

#[test]
fn nothing_is_left_unfinished() {
    tree::assert_none(&tree::files().iter().flat_map(complaints).collect::<Vec<_>>());
}

fn complaints(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (word, why) in CODE {
        found.extend(file.complaints(&format!("{word} {why}"), |line| has_word(line, word)));
    }
    let ignored = "a test that does not run proves nothing; fix it or delete it";
    found.extend(file.complaints(ignored, |line| line.contains("#[ignore")));
    for (at, line) in file.text.lines().enumerate() {
        for word in TEXT.iter().filter(|word| has_word(line, word)) {
            found.push(format!("{}:{}: {word}: fix it, or open an issue", file.path, at + 1));
        }
    }
    found
}

#[test]
fn each_is_found() {
    let found = |path, text: &str| complaints(&File::new(path, text)).len();
    assert_eq!(found("a.rs", "fn f() { todo!() }"), 1);
    assert_eq!(found("a.rs", "fn f() { unimplemented!(\"later\") }"), 1);
    assert_eq!(found("a.rs", "let x = dbg!(y);"), 1);
    assert_eq!(found("a.rs", "#[ignore = \"slow\"]"), 1);
    assert_eq!(found("a.rs", &format!("// {} rounding", TEXT[0])), 1);
    assert_eq!(found("a.md", &format!("{}: explain", TEXT[1])), 1);
    assert_eq!(found("a.rs", "// a todo!() in prose\nlet s = \"dbg!\";"), 0);
}
