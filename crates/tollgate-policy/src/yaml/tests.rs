use super::{Node, ScalarKind, Value, parse};
use crate::diagnostic::Diagnostic;

fn ok(text: &str) -> Node {
    parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error:?}"))
}

fn err(text: &str) -> Diagnostic {
    match parse(text.as_bytes()) {
        Ok(_) => panic!("{text:?} was accepted"),
        Err(error) => error,
    }
}

#[test]
fn scalars_keep_their_spelling() {
    let Value::Map(entries) =
        ok("a: 1.50\nb: 007\nc: off\nd: -5\ne: \"x y\"\nf: &q 0.1 # c\ng: *q\n").value
    else {
        panic!()
    };
    let texts: Vec<_> = entries
        .iter()
        .map(|(_, node)| match &node.value {
            Value::Scalar { kind, text } => (*kind, text.as_str()),
            _ => panic!(),
        })
        .collect();
    assert_eq!(texts[0], (ScalarKind::Number, "1.50"));
    assert_eq!(texts[1].1, "007");
    assert_eq!(texts[2], (ScalarKind::Text, "off"));
    assert_eq!(texts[3], (ScalarKind::Number, "-5"));
    assert_eq!(texts[4], (ScalarKind::Text, "x y"));
    assert_eq!(texts[5], (ScalarKind::Number, "0.1"));
    assert_eq!(texts[6], (ScalarKind::Number, "0.1"));
}

#[test]
fn everything_knows_its_place() {
    let Value::Map(entries) = ok("# c\na:\n  - x: 1\n    ü: 2\n").value else { panic!() };
    let Value::List(items) = &entries[0].1.value else { panic!() };
    let Value::Map(inner) = &items[0].value else { panic!() };
    assert_eq!((inner[1].0.at.line, inner[1].0.at.column), (4, 5));
    assert_eq!((inner[1].1.at.line, inner[1].1.at.column), (4, 8));
}

#[test]
fn nothing_is_an_empty_file() {
    for text in ["", "\n", "# only a comment\n", "---\n", "\u{feff}"] {
        assert!(matches!(ok(text).value, Value::Null), "{text:?}");
    }
}

#[test]
fn merge_keys_are_expanded() {
    let Value::Map(entries) = ok("a: &a {x: 1}\nb: {<<: *a, y: 2}\n").value else { panic!() };
    let Value::Map(inner) = &entries[1].1.value else { panic!() };
    assert_eq!(inner.len(), 2);
}

#[test]
fn failures_have_their_codes() {
    for (text, code, line) in [
        ("a: [1", "TG001", 1),
        ("a: b: c", "TG001", 1),
        ("a: *nowhere", "TG001", 1),
        ("a: 1\nb: 2\na: 3\n", "TG003", 3),
        ("a: 1\n---\nb: 2\n", "TG009", 3),
    ] {
        let error = err(text);
        println!("{}", error.render("f"));
        assert_eq!((error.code, error.line), (code, line), "{text:?}: {error:?}");
    }
}

#[test]
fn bombs_are_refused() {
    let mut bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for i in 1..10 {
        let alias = format!("*a{}", i - 1);
        bomb += &format!("a{i}: &a{i} [{}]\n", vec![alias; 10].join(","));
    }
    let error = err(&bomb);
    println!("{}", error.render("f"));
    assert_eq!(error.code, "TG007");
    for deep in ["[".repeat(5_000), "- ".repeat(5_000), "{a: ".repeat(5_000)] {
        let error = err(&deep);
        println!("{}", error.render("f"));
        assert_eq!(error.code, "TG007");
    }
    let large = vec![b' '; super::BYTES_MAX + 1];
    assert!(parse(&large).is_err_and(|error| error.code == "TG007"));
    assert!(parse(b"a: \xff").is_err_and(|error| error.code == "TG008" && error.column == 4));
}
