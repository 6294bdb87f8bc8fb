use super::*;

#[test]
fn a_template_says_what_is_wrong_with_it() {
    let error = |text: &str| Template::parse(text, |_| Meaning::Skip).unwrap_err();
    assert_eq!(error("no variables"), "it has no variables, such as $remote_addr");
    assert_eq!(error("$a$b"), "no text separates $a and $b");
    assert_eq!(error("$ x"), "a `$` has no name after it");
    assert_eq!(error("${a"), "a `{` has no `}`");
}

#[test]
fn escapes_are_those_of_nginx_and_apache() {
    assert_eq!(unescaped(r"a\x22b\\c"), "a\"b\\c");
    assert_eq!(unescaped(r#"a\"b\tc\xZZ"#), "a\"b\tc\\xZZ");
    assert_eq!(unescaped(r"\xC3\xA9\xff"), "é\u{fffd}");
    assert_eq!(unescaped(r"\"), "\\");
}
