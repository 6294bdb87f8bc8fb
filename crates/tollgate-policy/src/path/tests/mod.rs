use proptest::prelude::*;

use super::*;

mod models;

#[test]
fn each_rule_has_its_example() {
    let cases = [
        // Only unreserved escapes are decoded; other escapes become upper case; %2F stays in its
        // segment.
        ("/%41%7a%30%2d%2e%5f%7e", "/Az0-._~"),
        ("/a%2fb", "/a%2Fb"),
        ("/a%2F..%2Fb", "/a%2F..%2Fb"),
        ("/%e2%82%ac%21", "/%E2%82%AC%21"),
        ("/%2541", "/%2541"),
        // Escapes are decoded before dot segments are resolved.
        ("/a/%2e%2E/b", "/b"),
        ("/a/./b/.", "/a/b/"),
        ("/a/b/..", "/a/"),
        ("/../../a", "/a"),
        ("/..", "/"),
        ("/a/...", "/a/..."),
        ("/.well-known", "/.well-known"),
        // Slashes are merged before dot segments are resolved: `..` removes a nonempty segment.
        ("/a//../b", "/b"),
        ("/a//b/../../c", "/c"),
        ("/a/..//b", "/b"),
        ("/a//.//b", "/a/b"),
        ("//a///b//", "/a/b/"),
        // Query and fragment are dropped; case and trailing slash are kept.
        ("/a?b=/../c", "/a"),
        ("/a#b", "/a"),
        ("?a", "/"),
        ("/A/b/", "/A/b/"),
        ("/A/b", "/A/b"),
        // Characters that are not allowed in a path are escaped.
        ("/\u{e9} \"\\{}[]", "/%C3%A9%20%22%5C%7B%7D%5B%5D"),
        ("/a:b@c!$&'()*+,;=", "/a:b@c!$&'()*+,;="),
        // Broken escapes stay, and later characters cannot complete them.
        ("/%", "/%"),
        ("/%zz%4", "/%zz%4"),
        ("/%%34%31", "/%%341"),
        ("/%4%31", "/%4%31"),
        // Paths without a leading slash.
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
    // An escaped star is not a wildcard; other unneeded escapes are decoded.
    assert_eq!(normalise_pattern("/%2a/%40me%3abatch"), "/%2A/@me:batch");
}

/// Generates paths from characters that the rules treat specially.
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

/// Applies the rules one after the other, each over the whole path, without code of `normalise`.
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
    let mut collapsed = relative.trim_start_matches('/').to_owned();
    while collapsed.contains("//") {
        collapsed = collapsed.replace("//", "/");
    }
    let mut segments = Vec::new();
    let given: Vec<_> = collapsed.split('/').collect();
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
    let joined = format!("{root}{}", segments.join("/"));
    if joined.is_empty() { "/".to_owned() } else { joined }
}

#[test]
fn paths_with_two_readings_are_ambiguous() {
    use AmbiguousPath as A;
    let cases = [
        ("/x//../login", A::DotsAndEmptySegments),
        ("/a//b/../../login", A::DotsAndEmptySegments),
        ("//x/./login", A::DotsAndEmptySegments),
        ("/x/..//login", A::DotsAndEmptySegments),
        ("/../login//", A::DotsAndEmptySegments),
        ("/x/%2e%2e/login", A::EscapedDots),
        ("/x/.%2E/login", A::EscapedDots),
        ("/x/%2e/login", A::EscapedDots),
        ("/login/%2e", A::EscapedDots),
        ("/%2flogin", A::EscapedSlash),
        ("/x/..%2Flogin", A::EscapedSlash),
        ("/x\\..\\login", A::Backslash),
        ("/x/..%5clogin", A::Backslash),
        ("/x/..;/login", A::DotsWithParameter),
        ("/x/..;a=b/login", A::DotsWithParameter),
        ("/x/.;/login", A::DotsWithParameter),
        ("/x/..%3b/login", A::DotsWithParameter),
        ("/x/%2e%2e;/login", A::DotsWithParameter),
        ("/login%00", A::Control),
        ("/lo%0agin", A::Control),
        ("/lo\tgin", A::Control),
        ("/login\u{7f}", A::Control),
        ("/login%7F", A::Control),
        ("/login%", A::InvalidEscape),
        ("/login%2", A::InvalidEscape),
        ("/%zz", A::InvalidEscape),
        ("/%u00", A::InvalidEscape),
        ("/x/%c0%ae%c0%ae/login", A::Overlong),
        ("/x%c0%aflogin", A::Overlong),
        ("/x%e0%80%aflogin", A::Overlong),
        ("/x%f0%80%80%aflogin", A::Overlong),
        ("/x%c1%9clogin", A::Overlong),
    ];
    for (path, why) in cases {
        assert_eq!(ambiguity(path), Some(why), "{path}");
        assert!(readings(path).is_ok(), "{path} has too many readings");
    }
}

#[test]
fn ordinary_paths_are_not() {
    for path in [
        "/",
        "*",
        "",
        "/login",
        "/login/",
        "//login",
        "/a//b",
        "/a/b//",
        "/x/../login",
        "/x/./login",
        "/../login",
        "/login/.",
        "/a/..",
        "/%6cogin",
        "/.well-known",
        "/...",
        "/a..b",
        "/..a",
        "/%2e%2e%2e",
        "/a%20b",
        "/caf%C3%A9",
        "/caf\u{e9}",
        "/%2540",
        "/%252e%252e/",
        "/a;b",
        "/;x",
        "/a%3Bb",
        "/%40me",
        "/a?b=%2f..%00\\",
        "/login.",
        "/a%C0%B4",
        "/a..;b/c",
    ] {
        assert_eq!(ambiguity(path), None, "{path}");
    }
}

#[test]
fn readings_are_what_servers_make_of_a_path() {
    let has = |path: &str, reading: &str| readings(path).unwrap().iter().any(|one| one == reading);
    for path in [
        "/x//../login",
        "/a//b/../../login",
        "/x/%2e%2e/login",
        "/%2flogin",
        "/x/..%2flogin",
        "/x\\..\\login",
        "/x/..%5clogin",
        "/x/..;/login",
        "/login%00.png",
        "/lo%09gin",
        "/x/%c0%ae%c0%ae/login",
        "/login;a=b",
        "/x%c0%af..%c0%aflogin",
        "/%2e//login",
        "/login;%2f..;",
        "//h/login",
        "///h/login",
        "//u@h/login",
        "//h:80/login",
        "//[::1]/login",
        "//h;x//login",
        "//h/login?x",
        "//h/x/../login",
        "/\\h/login",
        "/\\/h\\login",
        "/%09/h/login",
        "/login.",
        "/login..",
        "/login...",
        "/login%2e",
        "/login%20",
        "/login ",
        "/login%20.%2E ",
        "/login.;x",
        "/login.?x",
        "//h/login.",
        "/login%2e%00",
    ] {
        assert!(has(path, "/login"), "{path}: {:?}", readings(path));
        assert_eq!(readings(path).unwrap()[0], normalise(path), "{path}");
    }
    assert!(has("/x/..%2flogin", "/x/..%2Flogin"));
    assert!(has("/x//../login", "/x/login"));
    assert!(has("/%40me", "/@me") && has("/%40me", "/%40me"));
    assert!(has("/users%3abatch", "/users:batch"));
    assert!(has("/a%3bb", "/a;b"));
    assert!(
        has("/login/.", "/login") && has("/login/x/..", "/login") && has("/login%2f", "/login")
    );
    assert_eq!(readings("//login").unwrap(), ["/login", "/"]);
    assert_eq!(readings("//h/login").unwrap(), ["/h/login", "/login"]);
    assert_eq!(readings("/login.").unwrap(), ["/login.", "/login"]);
    assert_eq!(readings("/login/.").unwrap(), ["/login/", "/login"]);
    assert_eq!(readings("/a/login/..").unwrap(), ["/a/", "/a", "/a/login/"]);
    // Paths with one reading.
    for path in
        ["/login", "/a//login", "//", "/x/../login", "/a%20b", "/%6cogin", "/a?b;c", "/a?%40", ""]
    {
        assert_eq!(readings(path).unwrap(), [""; 0], "{path}");
    }
}

#[test]
fn some_paths_are_refused_with_match_all() {
    // IIS and Jetty 9.4 decode these escapes; no reading does.
    for path in ["/%u006cogin", "/%U006Cogin", "/x%2f%%u002e"] {
        assert!(ambiguity(path).is_some(), "{path}");
        assert_eq!(readings(path), Err(AmbiguousPath::UnicodeEscape), "{path}");
    }
    assert!(readings("/100%user").is_ok());
    // Each reading of a long path costs time.
    assert!(readings(&"/\\".repeat(2048)).is_ok());
    for path in ["\\".repeat(4096), "\\;".repeat(2048)] {
        assert_eq!(readings(&format!("/{path}")), Err(AmbiguousPath::TooLong));
    }
    assert!(readings(&format!("/%2f?{}", "a".repeat(9000))).is_ok(), "a query is no part of it");
    assert!(readings(&"/;".repeat(7000)).is_ok(), "it is not ambiguous");
    let many = "/a%2fb\\c/..;d/%00e//../%2e./%c0%afx;y%5c%0a/./%40";
    assert_eq!(readings(many), Err(AmbiguousPath::TooManyReadings));
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
