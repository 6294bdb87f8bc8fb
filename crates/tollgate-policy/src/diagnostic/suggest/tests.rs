use super::{listed, nearest, quoted};

#[test]
fn the_nearest_word_is_within_two_edits() {
    let fields = ["algorithm", "rate", "name", "key", "keys"];
    assert_eq!(nearest("algoritm", fields), Some("algorithm"));
    assert_eq!(nearest("algortihm", fields), Some("algorithm"));
    assert_eq!(nearest("Rate", fields), Some("rate"));
    assert_eq!(nearest("kye", fields), Some("key"));
    assert_eq!(nearest("kyx", fields), None);
    assert_eq!(nearest("limits", fields), None);
    assert_eq!(nearest(&"a".repeat(10_000), fields), None);
}

#[test]
fn a_list_reads_as_a_sentence() {
    assert_eq!(listed(["a", "b", "c"]), "`a`, `b` or `c`");
    assert_eq!(listed(["a"]), "`a`");
}

#[test]
fn quoted_text_hides_passwords_and_is_short() {
    assert_eq!(quoted("redis://user:secret@host:1"), "`redis://***@host:1`");
    assert_eq!(quoted("redis://u:p@ss@host"), "`redis://***@host`");
    assert_eq!(quoted("a\u{7}b"), "`a\\u{7}b`");
    assert!(quoted(&"x".repeat(1000)).len() < 70);
}
