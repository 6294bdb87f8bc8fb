use proptest::prelude::*;

use super::*;

#[test]
fn each_rule_has_its_example() {
    let cases = [
        // Only unreserved escapes are decoded; the others are upper case; %2F stays in its segment.
        ("/%41%7a%30%2d%2e%5f%7e", "/Az0-._~"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%2F..%2Fb", "/a%2F..%2Fb"),
        ("/%e2%82%ac%21", "/%E2%82%AC%21"),
        ("/%2541", "/%2541"),
        // Escapes first, then dot segments.
        ("/a/%2e%2E/b", "/b"),
        ("/a/./b/.", "/a/b/"),
        ("/a/b/..", "/a/"),
        ("/../../a", "/a"),
        ("/..", "/"),
        ("/a/...", "/a/..."),
        ("/.well-known", "/.well-known"),
        // Dot segments first, then duplicate slashes: an empty segment is a segment that `..` takes away.
        ("/a//../b", "/a/b"),
        ("//a///b//", "/a/b/"),
        // No query, no fragment; case and trailing slash kept.
        ("/a?b=/../c", "/a"),
        ("/a#b", "/a"),
        ("?a", "/"),
        ("/A/b/", "/A/b/"),
        ("/A/b", "/A/b"),
        // What may not stand in clear is escaped.
        ("/\u{e9} \"\\{}[]", "/%C3%A9%20%22%5C%7B%7D%5B%5D"),
        ("/a:b@c!$&'()*+,;=", "/a:b@c!$&'()*+,;="),
        // Bad escapes stay, and what stands behind them cannot complete them.
        ("/%", "/%"),
        ("/%zz%4", "/%zz%4"),
        ("/%%34%31", "/%%341"),
        ("/%4%31", "/%4%31"),
        // Without a leading slash.
        ("*", "*"),
        ("a/../b", "b"),
        ("..", "/"),
        ("./a", "a"),
    ];
    for (path, expected) in cases {
        assert_eq!(normalise(path), expected, "{path}");
    }
}

#[test]
fn a_path_in_its_one_spelling_is_borrowed() {
    for path in ["/", "/a/b.c", "/a/b/", "*", ""] {
        assert!(matches!(normalise(path), Cow::Borrowed(_)), "{path}");
    }
}

#[test]
fn a_pattern_keeps_its_wildcards() {
    assert_eq!(normalise_pattern("/%61?i/*/**/x%2f\u{e9}"), "/a?i/*/**/x%2F%C3%A9");
    assert_eq!(normalise_pattern("/a/../b//c/?"), "/b/c/?");
}

/// Paths made of what the rules are about.
fn tricky() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/"),
        Just("."),
        Just(".."),
        Just("a"),
        Just("B"),
        Just("4"),
        Just("1"),
        Just("%"),
        Just("%4"),
        Just("%41"),
        Just("%34"),
        Just("%31"),
        Just("%2e"),
        Just("%2f"),
        Just("%25"),
        Just("?"),
        Just("#"),
        Just(" "),
        Just("\u{e9}"),
        Just("*"),
    ];
    prop::collection::vec(piece, 1..16).prop_map(|pieces| pieces.concat())
}

/// The rules one after the other, each over the whole path: nothing streamed, nothing shared.
fn oracle(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap();
    let mut unescaped = String::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let byte = rest.get(1..3).filter(|_| first == '%');
        let byte = byte.filter(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()));
        let is_broken = unescaped.ends_with('%')
            || unescaped.len() >= 2
                && unescaped.as_bytes()[unescaped.len() - 2] == b'%'
                && unescaped.ends_with(|last: char| last.is_ascii_hexdigit());
        if let Some(digits) = byte {
            let byte = char::from(u8::from_str_radix(digits, 16).unwrap());
            if (byte.is_ascii_alphanumeric() || "-._~".contains(byte)) && !is_broken {
                unescaped.push(byte);
            } else {
                unescaped.push_str(&format!("%{}", digits.to_uppercase()));
            }
            rest = &rest[3..];
            continue;
        }
        if first.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/%".contains(first) {
            unescaped.push(first);
        } else {
            let mut buffer = [0; 4];
            for byte in first.encode_utf8(&mut buffer).bytes() {
                unescaped.push_str(&format!("%{byte:02X}"));
            }
        }
        rest = &rest[first.len_utf8()..];
    }
    let (root, relative) = match unescaped.strip_prefix('/') {
        Some(relative) => ("/", relative),
        None => ("", &*unescaped),
    };
    let mut segments = Vec::new();
    let given: Vec<_> = relative.split('/').collect();
    for (place, segment) in given.iter().enumerate() {
        if matches!(*segment, "." | "..") {
            if *segment == ".." {
                segments.pop();
            }
            if place + 1 == given.len() && !segments.is_empty() {
                segments.push("");
            }
        } else {
            segments.push(segment);
        }
    }
    let mut joined = format!("{root}{}", segments.join("/"));
    while joined.contains("//") {
        joined = joined.replace("//", "/");
    }
    if joined.is_empty() { "/".to_owned() } else { joined }
}

proptest! {
    #[test]
    fn agrees_with_the_rules_one_by_one(path in tricky()) {
        prop_assert_eq!(normalise(&path), oracle(&path));
    }

    #[test]
    fn a_second_pass_changes_nothing(path in prop_oneof![tricky(), any::<String>()]) {
        let once = normalise(&path).into_owned();
        prop_assert_eq!(normalise(&once), &*once);
    }

    #[test]
    fn the_result_can_stand_in_a_request_line(path in any::<String>()) {
        prop_assume!(!path.is_empty());
        let path = normalise(&path).into_owned();
        prop_assert!(!path.is_empty());
        prop_assert!(path.bytes().all(|byte| byte == b'%' || is_clear(byte)), "{}", path);
    }

    #[test]
    fn escaping_what_needs_none_leads_to_the_same_path(
        path in "(/[a-zA-Z0-9._~-]{1,4}){1,4}", escaped in prop::collection::vec(any::<bool>(), 24),
    ) {
        let mut escaped = escaped.iter().cycle();
        let spelled: String = path
            .chars()
            .map(|c| if c != '/' && *escaped.next().unwrap() { format!("%{:02x}", c as u32) } else { c.into() })
            .collect();
        prop_assert_eq!(normalise(&spelled), normalise(&path));
    }
}
