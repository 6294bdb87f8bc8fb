use proptest::prelude::*;

use super::*;

fn path_matches(pattern: &str, path: &str) -> bool {
    Glob::path(pattern).unwrap().matches(path)
}

#[test]
fn path_globs_are_anchored_and_stop_at_slashes() {
    let cases = [
        ("/a", "/a", true),
        ("/a", "/a/", false),
        ("/a", "/A", false),
        ("/a", "/ab", false),
        ("/a*", "/abc", true),
        ("/a*", "/a", true),
        ("/a*", "/ab/c", false),
        ("/*/c", "/ab/c", true),
        ("/*/c", "/a/b/c", false),
        ("/a?c", "/abc", true),
        ("/a?c", "/ac", false),
        ("/a?c", "/a/c", false),
        ("/a**c", "/a/b/c", true),
        ("/**", "/", true),
        ("/**", "/a/b", true),
        ("**", "*", true),
        ("*.png", "/a.png", false),
        ("**.png", "/b/a.png", true),
        ("/api/**", "/api", true),
        ("/api/**", "/api/", true),
        ("/api/**", "/api/x/y", true),
        ("/api/**", "/apix", false),
        ("/api/**", "/x/api", false),
        ("/a/**/b", "/a/b", true),
        ("/a/**/b", "/a/x/y/b", true),
        ("/a/**/b", "/ab", false),
        ("/a/**/b", "/a/xb", false),
        ("/a/**/b/**", "/a/b", true),
        ("/a/**x", "/a", false),
        ("/a/***", "/a", true),
        ("/v*/users/*", "/v1/users/42", true),
        ("/v*/users/*", "/v1/users/42/x", false),
        ("/a*b*c", "/abbc", true),
        ("/a*b*c", "/acb", false),
        ("/**/aa/**/c", "/aaa/aa/c", true),
        ("/**/aa/**/c", "/aaa/c", false),
        ("/**/a/**/**/c", "/a/c", true),
        ("/**/a*/**", "/x/ab", true),
        ("/**/a*/**", "/x/ba", false),
        ("/**/?/**/?", "/a/b", true),
        ("/**/?/**/?", "/a", false),
        ("**/**", "", true),
    ];
    for (pattern, path, expected) in cases {
        assert_eq!(path_matches(pattern, path), expected, "{pattern} on {path}");
    }
}

#[test]
fn elsewhere_a_star_is_any_run_and_nothing_else_is_special() {
    let cases = [
        ("*", "", true),
        ("*.example.com", "a/b.example.com", true),
        ("*.example.com", "example.com", false),
        ("a*c*e", "a/bcd/e", true),
        ("a**e", "abe", true),
        ("what?", "what?", true),
        ("what?", "whats", false),
        ("\u{e9}*\u{e8}", "\u{e9}x\u{e8}", true),
        ("aba*aba", "aba", false),
    ];
    for (pattern, text, expected) in cases {
        assert_eq!(Glob::text(pattern).unwrap().matches(text), expected, "{pattern} on {text}");
    }
}

/// Returns the number of bytes examined while `pattern` is matched against `text`.
fn steps(glob: &Glob, text: &str) -> usize {
    pieces::counted::take();
    glob.matches(text);
    pieces::counted::take()
}

/// The search takes about one step for each byte of the text and each 64 bytes of a piece, for any
/// wildcards and any text.
#[test]
fn hostile_texts_and_patterns_take_one_pass() {
    let path_globs = [
        "/**/a/**/b",
        "/**/a*/**/b",
        "/**/a*b?c/**/*x",
        "**a**a**a**a**a**b",
        "/**/a/**/a/**/a/**/a/**/b*",
        "/*/**/*a*a*a*a*a*a*a*a*b",
        "/a/**/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab/**/c",
    ];
    let text_globs = ["*a*a*a*b", "*aaaaaaaab*aaaaaaaab*", "*a*aa*aaa*aaaa*b*c"];
    let long = format!("**{}b*", "a*".repeat(100));
    let path = path_globs.iter().copied().chain([long.as_str()]);
    let globs = path.map(|pattern| (pattern, Glob::path(pattern)));
    let globs = globs.chain(text_globs.map(|pattern| (pattern, Glob::text(pattern))));
    for (pattern, glob) in globs {
        let glob = glob.unwrap();
        let words = pattern.len() / 64 + 1;
        for unit in ["a", "/a", "aa/", "/ab", "/", "a/b", "/aaaaaaaaaaaaaaaaaaaab", "b"] {
            for length in [1_000, 16_000] {
                let text = unit.repeat(length / unit.len());
                let (steps, most) = (steps(&glob, &text), 2 * pattern.len() + words * text.len());
                assert!(steps <= most, "{pattern} on {unit}..: {steps} steps, not {most}");
            }
        }
    }
}

#[test]
fn long_pieces_carry_from_word_to_word() {
    let pattern = format!("**{}b*", "a*".repeat(100));
    let glob = Glob::path(&pattern).unwrap();
    assert!(!glob.matches(&"a".repeat(4_096)));
    assert!(glob.matches(&format!("{}b", "a".repeat(4_096))));
    assert!(!glob.matches(&format!("{}b", "a".repeat(99))));
    let pattern = format!("/**/{}/**/x?", "a?".repeat(200));
    let glob = Glob::path(&pattern).unwrap();
    let path = |length: usize| format!("/y/{}/z/xy", "ab".repeat(length));
    assert!(glob.matches(&path(200)));
    assert!(!glob.matches(&path(199)) && !glob.matches(&path(201)));
}

#[test]
fn the_longest_pattern_is_accepted_and_a_longer_one_is_not() {
    let text = |length: usize| format!("*{}*", "x".repeat(length));
    let glob = Glob::text(&text(TOKENS_MAX - 2)).unwrap();
    assert!(glob.matches(&"x".repeat(TOKENS_MAX)));
    assert!(!glob.matches(&"x".repeat(TOKENS_MAX - 3)));
    assert_eq!(Glob::text(&text(TOKENS_MAX - 1)), Err(PatternTooLong));
    assert!(Glob::text(&format!("{}*", "x".repeat(5_000))).is_ok());
}

#[test]
fn anchors_are_whole_segments() {
    let cases = [
        ("/**", Some(""), true),
        ("/api/**", Some("/api"), true),
        ("/api/v*/x", Some("/api"), false),
        ("/api/**/x", Some("/api"), false),
        ("/a*", Some(""), false),
        ("a*", None, false),
        ("**", None, true),
        ("**/x", None, false),
    ];
    for (pattern, anchor, is_whole) in cases {
        let glob = Glob::path(pattern).unwrap();
        assert_eq!((glob.anchor(), glob.is_whole_subtree()), (anchor, is_whole), "{pattern}");
    }
}

/// The rules of the manual as a naive recursion over the pattern.
pub(crate) fn naive(pattern: &str, text: &str, is_path: bool) -> bool {
    let suffixes = || (0..=text.len()).filter_map(|start| text.get(start..));
    let in_segment = |rest: &str| !text[..text.len() - rest.len()].contains('/');
    if let Some(rest) = pattern.strip_prefix("/**")
        && is_path
        && (rest.is_empty() || rest.starts_with('/'))
    {
        let below = text.strip_prefix('/');
        return naive(rest, text, true)
            || below.is_some_and(|below| {
                (0..=below.len()).any(|start| {
                    below.is_char_boundary(start) && naive(rest, &below[start..], true)
                })
            });
    }
    if let Some(rest) = pattern.strip_prefix("**")
        && is_path
    {
        return suffixes().any(|suffix| naive(rest, suffix, true));
    }
    if let Some(rest) = pattern.strip_prefix('*') {
        return suffixes()
            .any(|suffix| (!is_path || in_segment(suffix)) && naive(rest, suffix, is_path));
    }
    let mut characters = text.chars();
    match (pattern.chars().next(), characters.next()) {
        (None, None) => true,
        (Some('?'), Some(found)) if is_path => {
            found != '/' && naive(&pattern[1..], characters.as_str(), true)
        }
        (Some(expected), Some(found)) => {
            expected == found
                && naive(&pattern[expected.len_utf8()..], characters.as_str(), is_path)
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn path_globs_agree_with_the_oracle(
        pattern in "(/|a|b|\\*|\\*\\*|\\?|/\\*\\*|/\\*\\*/){0,9}", path in "(/|a|b){0,12}",
    ) {
        // The file layer refuses three asterisks in a row.
        let mut pattern = pattern;
        while pattern.contains("***") {
            pattern = pattern.replace("***", "**");
        }
        prop_assert_eq!(path_matches(&pattern, &path), naive(&pattern, &path, true));
    }

    #[test]
    fn text_globs_agree_with_the_oracle(pattern in "[ab*?\u{e9}]{0,8}", text in "[ab?\u{e9}]{0,10}") {
        let glob = Glob::text(&pattern).unwrap();
        prop_assert_eq!(glob.matches(&text), naive(&pattern, &text, false));
    }

    #[test]
    fn every_matching_path_begins_with_the_anchor(
        pattern in "(/(a|b|a\\*|\\*|\\*\\*)){1,4}", path in "(/(a|b|ab)){0,5}",
    ) {
        let glob = Glob::path(&pattern).unwrap();
        let is_below = |anchor: &str| path.strip_prefix(anchor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_below = glob.anchor().is_none_or(is_below);
        if glob.is_whole_subtree() {
            prop_assert_eq!(glob.matches(&path), is_below);
        } else if glob.matches(&path) {
            prop_assert!(is_below);
        }
    }
}
