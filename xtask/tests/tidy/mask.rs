//! Rust code with its comments and strings blanked out, line by line.

/// Blanks out comments, strings and characters, so that checks do not match prose. Quotes stay.
pub(crate) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = end_of_blank(&chars, at);
        if end > at {
            let blank = |c: &char| if *c == '\n' { '\n' } else { ' ' };
            out.extend(chars[at..end].iter().map(blank));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// The end of the comment or literal that starts at `at`; `at` itself if none starts there.
fn end_of_blank(chars: &[char], at: usize) -> usize {
    let peek = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    match (chars[at], peek(1)) {
        ('/', '/') => find(chars, at, |i| chars[i] == '\n'),
        ('/', '*') => end_of_block(chars, at),
        ('"', _) => end_of_quoted(chars, at, '"'),
        ('r', '"' | '#') if !follows_name(chars, at) => end_of_raw(chars, at),
        ('\'', '\\') => end_of_quoted(chars, at, '\''),
        ('\'', _) if peek(2) == '\'' => at + 3,
        _ => at,
    }
}

/// Whether the letter at `at` ends a name, as in `for"`. The `b` of `br"` is not a name.
fn follows_name(chars: &[char], at: usize) -> bool {
    let of_name = |i: usize| chars[i].is_alphanumeric() || chars[i] == '_';
    let prefix = at > 0 && matches!(chars[at - 1], 'b' | 'c') && (at == 1 || !of_name(at - 2));
    at > 0 && of_name(at - 1) && !prefix
}

fn find(chars: &[char], from: usize, found: impl Fn(usize) -> bool) -> usize {
    (from..chars.len()).find(|&i| found(i)).unwrap_or(chars.len())
}

fn end_of_block(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0_u32, at);
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') if depth == 1 => return i + 2,
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
    }
    chars.len()
}

fn end_of_quoted(chars: &[char], at: usize, quote: char) -> usize {
    let mut i = at + 1;
    while i < chars.len() && chars[i] != quote {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(chars.len())
}

/// `r"..."` or `r#"..."#`. A raw name such as `r#type` is not a string.
fn end_of_raw(chars: &[char], at: usize) -> usize {
    let open = find(chars, at + 1, |i| chars[i] != '#');
    if chars.get(open) != Some(&'"') {
        return at;
    }
    let hashes = open - at - 1;
    let closes = |i: usize| {
        chars[i] == '"'
            && chars.get(i + 1..=i + hashes).is_some_and(|run| run.iter().all(|&c| c == '#'))
    };
    (find(chars, open + 1, closes) + 1 + hashes).min(chars.len())
}

#[test]
fn prose_is_blanked_and_code_is_kept() {
    let kept = |text: &str| code_only(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(kept("a(); // todo!()\nb();"), "a(); b();");
    assert_eq!(kept("a /* x /* y */ z */ b"), "a b");
    assert_eq!(kept(r#"f("unsafe \" {", x)"#), "f( , x)");
    assert_eq!(kept(r##"f(r#"a "quoted" {"#, br"\", x)"##), "f( , b , x)");
    assert_eq!(kept(r"m('{', '\'', x)"), "m( , , x)");
    assert_eq!(kept("fn f<'a>(x: &'a str) { r#type }"), "fn f<'a>(x: &'a str) { r#type }");
}

#[test]
fn lines_stay_where_they_are() {
    let text = "a\n/* b\n c */\nlet s = \"x\ny\";\nz";
    assert_eq!(code_only(text).lines().count(), text.lines().count());
    assert_eq!(code_only(text).lines().last(), Some("z"));
}
