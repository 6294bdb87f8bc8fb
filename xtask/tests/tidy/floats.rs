//! No float on the decision path: the core and the stores decide in integers.

use crate::tree::{self, File, has_word};

const CRATES: &[&str] = &["crates/tollgate-core/src/", "crates/tollgate-store/src/"];

#[test]
fn decisions_are_made_in_integers() {
    tree::assert_none(&tree::files().iter().flat_map(complaints).collect::<Vec<_>>());
}

fn complaints(file: &File) -> Vec<String> {
    if !file.ships() || !CRATES.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    file.complaints("use integers, with the unit in the name", |line| {
        has_word(line, "f32") || has_word(line, "f64") || has_float_literal(line)
    })
}

/// `1.5`, but neither `0..5` nor the fields of `pair.0.1`.
fn has_float_literal(line: &str) -> bool {
    line.match_indices('.').any(|(at, _)| {
        let whole = line[..at].trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
        let digits = at > whole.len();
        let of_name = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
        digits
            && !whole.chars().next_back().is_some_and(of_name)
            && line[at + 1..].starts_with(|c: char| c.is_ascii_digit())
    })
}

#[test]
fn a_float_is_found() {
    let found = |path, text| complaints(&File::new(path, text)).len();
    let file = "crates/tollgate-core/src/rate.rs";
    assert_eq!(found(file, "let rate: f64 = x;"), 1);
    assert_eq!(found(file, "let rate = x as f32;"), 1);
    assert_eq!(found(file, "let half = 0.5;"), 1);
    assert_eq!(found(file, "for i in 0..5 { pair.0.1 += x1.0 }"), 0);
    assert_eq!(found("crates/tollgate-core/src/rate/tests.rs", "let rate: f64 = x;"), 0);
    assert_eq!(found("crates/tollgate-cli/src/plot.rs", "let half = 0.5;"), 0);
}
