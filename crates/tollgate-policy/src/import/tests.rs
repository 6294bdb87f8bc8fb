use super::condition::{conditions, variable};
use super::limitador;

const FILE: &[u8] = b"
- namespace: shop
  max_value: 10
  seconds: 60
  conditions: [\"descriptors[0]['req.method'] == 'GET'\"]
  variables: [\"descriptors[0].user_id\"]
- namespace: shop
  name: not/for admins
  max_value: 5
  seconds: 1
  conditions:
    - \"req.path == '/login' && role != 'admin'\"
- namespace: shop
  max_value: 1
  seconds: 1
  conditions: [\"descriptors[0].path.startsWith('/api')\"]
- namespace: shop
  max_value: 4294967296
  seconds: 1
- {namespace: shop, max_value: 1, seconds: 0}
- {namespace: shop, max_value: 1, seconds: 1, variables: [\"size(x)\"]}
- {namespace: shop, max_value: 1, seconds: 1, policy: x}
- {max_value: 1, seconds: 1}
";

#[test]
fn what_has_an_equal_becomes_a_limit_that_loads() {
    let imported = limitador(FILE).unwrap();
    assert_eq!(imported.limits, 2);
    let compiled = crate::compile(imported.text.as_bytes()).unwrap();
    let names: Vec<_> = compiled.limits.iter().map(|(limit, _)| &*limit.name).collect();
    assert_eq!(names, ["shop", "not-for admins"]);
    let (limit, spec) = &compiled.limits[0];
    assert_eq!(*limit.key, ["descriptor.user_id".into()]);
    assert_eq!(limit.params.unwrap().period_us(), 60_000_000);
    assert_eq!(spec.conditions.len(), 2, "its namespace, and what it asks for");
    assert_eq!(compiled.limits[1].1.not.len(), 1);
}

#[test]
fn what_has_none_is_named_with_its_place() {
    let imported = limitador(FILE).unwrap();
    let lost: Vec<_> = imported.notes.iter().filter(|note| note.is_lost).collect();
    let lines: Vec<_> = lost.iter().map(|note| note.at.line).collect();
    assert_eq!(lines, [16, 18, 20, 21, 22, 23], "{lost:#?}");
    assert!(lost[0].text.contains("startsWith"));
    assert!(imported.notes.iter().any(|note| !note.is_lost && note.text.contains("aligned")));
    assert!(limitador(b"limits: []").is_err());
    let nothing = limitador(b"[]").unwrap();
    assert!(crate::compile(nothing.text.as_bytes()).unwrap().limits.is_empty());
}

/// Limitador identifies limits by namespace, seconds, conditions and variables, and keeps the first
/// of equals.
#[test]
fn of_limits_that_count_alike_the_first_wins() {
    let file = b"
- {namespace: shop, max_value: 10, seconds: 60, conditions: [\"a == 'x'\", \"b == 'y'\"], variables: [user, ip]}
- {namespace: shop, max_value: 5, seconds: 60, conditions: [\"b == 'y'\", \"a == 'x'\"], variables: [ip, user], name: second}
- {namespace: shop, max_value: 5, seconds: 61, conditions: [\"a == 'x'\", \"b == 'y'\"], variables: [user, ip]}
- {namespace: shop, max_value: 5, seconds: 60, conditions: [\"a == 'x'\"], variables: [user, ip]}
- {namespace: shop, max_value: 5, seconds: 60, conditions: [\"a == 'x'\", \"b == 'y'\"], variables: [user]}
- {namespace: cart, max_value: 5, seconds: 60, conditions: [\"a == 'x'\", \"b == 'y'\"], variables: [user, ip]}
- {namespace: cart, max_value: 1, seconds: 1, conditions: [\"x > 1\"]}
- {namespace: cart, max_value: 2, seconds: 1, conditions: [\"x > 1\"]}
";
    let imported = limitador(file).unwrap();
    assert_eq!(imported.limits, 5, "{}", imported.text);
    assert!(imported.text.contains("rate: 10/60s") && !imported.text.contains("second"));
    let dropped: Vec<_> =
        imported.notes.iter().filter(|note| note.text.starts_with("dropped")).collect();
    assert_eq!(dropped.iter().map(|note| note.at.line).collect::<Vec<_>>(), [3, 9]);
    assert!(dropped[0].text.contains("the limit at 2:3, which wins"), "{dropped:?}");
    assert!(dropped.iter().all(|note| !note.is_lost), "Limitador does not enforce it either");
}

#[test]
fn conditions_are_comparisons_of_entries_with_texts() {
    let read = |text: &str| {
        conditions(text).map(|all| {
            all.into_iter()
                .map(|c| format!("{} {} {}", c.entry.key, c.is_equal, c.value))
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(read("a == 'b'"), Some(vec!["a true b".to_owned()]));
    assert_eq!(read("descriptors[1]['a.b'] != \"c\""), Some(vec!["a.b false c".to_owned()]));
    for wrong in
        ["a", "a == b", "a == '*'", "a == ''", "a == 'b' || c == 'd'", "f(a) == 'b'", "a > '1'"]
    {
        assert_eq!(read(wrong), None, "{wrong}");
    }
    assert_eq!(variable("descriptors[x].a"), None);
    assert_eq!(variable("descriptors[0][a]"), None);
}

/// Each descriptor is decided alone, so such a limit would never apply.
#[test]
fn a_limit_on_several_descriptors_is_left_out() {
    let limit = |conditions: &str, variables: &str| {
        let fields = "namespace: shop, max_value: 1, seconds: 1";
        let file = format!("[{{{fields}, conditions: [{conditions}], variables: [{variables}]}}]");
        limitador(file.as_bytes()).unwrap()
    };
    let first = "\"descriptors[0].a == 'x'\"";
    assert_eq!(limit(first, "\"descriptors[0].b\"").limits, 1);
    assert_eq!(limit(first, "b").limits, 1, "the older form names none");
    for lost in [
        limit(first, "\"descriptors[1].b\""),
        limit("\"descriptors[0].a == 'x'\", \"descriptors[1].a == 'y'\"", ""),
        limit("", "\"descriptors[0].a\", \"descriptors[10].a\""),
    ] {
        assert_eq!(lost.limits, 0);
        assert!(lost.notes[0].text.contains("several descriptors"), "{:?}", lost.notes);
    }
}

#[test]
fn texts_stay_texts() {
    let file = b"[{namespace: 'on', max_value: 1, seconds: 1, conditions: [\"debug == 'true'\"]}]";
    let imported = limitador(file).unwrap();
    assert!(
        imported.text.contains("{domain: 'on', descriptor.debug: 'true'}"),
        "{}",
        imported.text
    );
    assert_eq!(crate::compile(imported.text.as_bytes()).unwrap().limits.len(), 1);
}

#[test]
fn texts_keep_characters_that_no_one_sees() {
    for hidden in ["\\n", "\\0", "\\e", "\\u0007", "\\x7f", "\\u2028", "\\ufeff", "\\\\ \\\" ' \\n"]
    {
        let file = format!("- {{namespace: \"a{hidden}b\", max_value: 5, seconds: 60}}\n");
        let imported = limitador(file.as_bytes()).unwrap().text;
        let domain = |text: &str| {
            let node = crate::yaml::parse(text.as_bytes()).unwrap();
            let crate::yaml::Value::List(items) = &node.value else { return node };
            items[0].clone()
        };
        let given = domain(&file).field("namespace").unwrap().text().unwrap().to_owned();
        let limits = domain(&imported).field("limits").unwrap().clone();
        let crate::yaml::Value::List(limits) = limits.value else { panic!("{imported}") };
        let read = limits[0].field("match").unwrap().field("domain").unwrap();
        assert_eq!(read.text(), Some(given.as_str()), "{imported}");
    }
}
