//! `tollgate hash`.

use super::run;

const KEY_1: &str = "sha256:be2974546978e3739e6d6da85c4be9f334ce32df2b9fd4b6ff1b55c0d57e9d44";
const KEY_2: &str = "sha256:7c36b0a9dedde119c75165957c6c9c187e65df1ee5db87c4c58ad503ad88cbe3";

#[test]
fn it_is_the_sha_256_of_the_value() {
    assert_eq!(run(&["hash", "key-1"], ""), (0, format!("{KEY_1}\n"), String::new()));
    let both = format!("{KEY_1}\n{KEY_2}\n");
    assert_eq!(run(&["hash", "key-1", "key-2"], "").1, both);
}

/// A line of standard input is a value, with or without a line end, so that secrets need not be
/// arguments.
#[test]
fn lines_of_standard_input_are_values() {
    for input in ["key-1", "key-1\n", "key-1\r\n"] {
        assert_eq!(run(&["hash"], input), (0, format!("{KEY_1}\n"), String::new()), "{input:?}");
    }
    assert_eq!(run(&["hash"], "key-1\nkey-2\n").1, format!("{KEY_1}\n{KEY_2}\n"));
}

#[test]
fn json_is_an_object_a_line() {
    let (status, out, _) = run(&["hash", "--format", "json"], "key-1\n");
    assert_eq!((status, out), (0, format!("{{\"hash\":\"{KEY_1}\"}}\n")));
}

#[test]
fn nothing_has_no_hash() {
    for (arguments, input) in [(&["hash"][..], ""), (&["hash", ""], ""), (&["hash"], "a\n\nb\n")] {
        let (status, out, error) = run(arguments, input);
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?} {input:?}");
        assert!(error.starts_with("tollgate: "), "{error}");
    }
    let (_, _, error) = run(&["hash"], "key-1\n\n");
    assert_eq!(error, "tollgate: line 2 of standard input is empty; remove it\n");
}
