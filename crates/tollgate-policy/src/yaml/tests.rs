use super::oracle::{Expected, ExpectedValue, expected};
use super::{Node, ScalarKind, Value, parse};
use crate::diagnostic::Diagnostic;
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use proptest::test_runner::RngSeed;

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
    assert_eq!(texts[1], (ScalarKind::Number, "007"));
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
        ("a: 1\n---\nb: 2\n", "TG009", 2),
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

#[test]
fn a_tag_must_fit_its_value() {
    for text in ["a: !!int x", "a: !!bool 1", "a: !!null 1", "a: !!binary aGk=", "a: !mine 1"] {
        assert!(err(text).message.contains("tag"), "{text}");
    }
    for text in ["a: !!map [1]", "a: !!seq {}", "a: !!set {x}"] {
        assert!(err(text).message.contains("tag"), "{text}");
    }
    let Value::Map(entries) = ok("a: !!str 5\nb: ! 5\nc: !!int '5'\n").value else { panic!() };
    let kinds = [ScalarKind::Text, ScalarKind::Text, ScalarKind::Unsigned(5)];
    for ((_, node), expected) in entries.iter().zip(kinds) {
        assert!(matches!(&node.value, Value::Scalar { kind, .. } if *kind == expected));
    }
}

#[test]
fn an_alias_cannot_be_inside_its_value() {
    for text in ["a: &a [1, *a]", "&a {<<: *a}", "&k <<: {}\nb: *k"] {
        assert!(err(text).message.starts_with("this alias is inside"), "{text}");
    }
}

#[test]
fn large_copies_are_refused() {
    let mega = "x".repeat(1 << 20);
    let aliases = vec!["*a"; 100].join(", ");
    let nested: String = (0..20).map(|n| format!("&n{n} [")).collect();
    for text in [
        format!("a: &a '{mega}'\nb: [{aliases}]\n"),
        format!("a: &a {{? {mega} : 1}}\nb: [{aliases}]\n"),
        format!("a: {nested}'{mega}'{}\n", "]".repeat(20)),
        format!("a: [{}]\n", vec!["1"; 4_000_000].join(",")),
    ] {
        assert_eq!(err(&text).code, "TG007", "{}", &text[..40]);
    }
}

#[test]
fn names_may_be_as_long_as_tokens() {
    let long = "k".repeat(8_000);
    for text in [format!("{{\"{long}\":\"pro\"}}"), format!("{long}: pro\n")] {
        assert!(ok(&text).field(&long).is_some());
    }
}

#[test]
fn block_levels_are_counted() {
    let nested = |levels| -> String {
        (0..levels).map(|n: usize| format!("{}a:\n", " ".repeat(n))).collect()
    };
    ok(&nested(super::DEPTH_MAX));
    assert_eq!(err(&nested(super::DEPTH_MAX + 1)).code, "TG007");
}

#[test]
fn an_alias_counts_the_levels_below_it() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let text = |levels| format!("a: &a {}\nb: {{c: {{d: {{e: *a}}}}}}\n", nested(levels));
    ok(&text(super::DEPTH_MAX - 4));
    assert_eq!(err(&text(super::DEPTH_MAX - 3)).code, "TG007");
}

fn shape(node: &Node) -> Expected {
    let value = match &node.value {
        Value::Null => ExpectedValue::Null,
        Value::Scalar { kind: ScalarKind::Text, text } => ExpectedValue::Text(text.clone()),
        Value::Scalar { kind, .. } => ExpectedValue::Other(*kind),
        Value::List(items) => ExpectedValue::List(items.iter().map(shape).collect()),
        Value::Map(entries) => ExpectedValue::Map(
            entries.iter().map(|(key, node)| (key.text.clone(), shape(node))).collect(),
        ),
    };
    Expected(value, (node.at.line, node.at.column))
}

/// Fragments of generated files.
const PIECES: &[&str] = &[
    "a",
    "b",
    "ü",
    "x y",
    "<<",
    ": ",
    ":",
    "? ",
    "- ",
    "-",
    ", ",
    ",",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "\n  ",
    "\n    ",
    "&p ",
    "*p",
    "*p ",
    "&q ",
    "*q",
    "'",
    "\"",
    "'t'",
    "\"t\"",
    "|\n  ",
    ">\n  ",
    "# c",
    "#",
    "!!str ",
    "! ",
    "1",
    "0",
    "-5",
    "+3",
    "1_000",
    "0x1F",
    "0o17",
    "0b11",
    "007",
    "1.50",
    ".5",
    "inf",
    "true",
    "False",
    "yes",
    "off",
    "~",
    "null",
    "NULL",
    "\t",
    "---\n",
    "%YAML 1.2\n",
    "18446744073709551616",
    "--5",
    "+-5",
];

/// A line of a block map.
fn line() -> impl Strategy<Value = String> {
    let key = select(&["a", "b", "c", "'d'", "<<", "1", "*p", "true"][..]);
    let anchor = prop_oneof![8 => Just(""), 1 => Just("&p "), 1 => Just("&q ")];
    let value = prop_oneof![
        6 => select(PIECES).prop_map(str::to_owned),
        2 => vec(select(PIECES), 1..4).prop_map(|pieces| format!("[{}]", pieces.join(", "))),
        2 => vec((select(&["a", "b", "c"][..]), select(PIECES)), 0..3).prop_map(|pairs| {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            format!("{{{}}}", pairs.join(", "))
        }),
        3 => select(&["*p", "1e3", "-2.5E-3", "1e"][..]).prop_map(str::to_owned),
        1 => Just("[*p, *q]".to_owned()),
    ];
    (select(&["", "  ", "- ", "  - "][..]), key, anchor, value)
        .prop_map(|(indent, key, anchor, value)| format!("{indent}{key}: {anchor}{value}\n"))
}

proptest! {
    // The same files in each run: where the libraries differ is decided here, not by chance.
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn files_are_read_as_another_library_reads_them(
        text in prop_oneof![
            vec(select(PIECES), 0..16).prop_map(|pieces| pieces.concat()),
            vec(line(), 0..8).prop_map(|lines| lines.concat()),
        ],
    ) {
        let ours = parse(text.as_bytes()).ok().map(|node| shape(&node));
        let theirs = expected(&text);
        // A file without a value has no place.
        let is_null = |node: &Option<Expected>| matches!(node, Some(Expected(ExpectedValue::Null, _)));
        if !(is_null(&ours) && is_null(&theirs)) {
            prop_assert_eq!(ours, theirs, "{:?}", text);
        }
    }
}
