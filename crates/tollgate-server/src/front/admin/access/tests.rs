use super::*;

fn access(yaml: &str, value: Option<&str>) -> Result<Access, ConfigErrorKind> {
    let file = format!("admin: {{token: {yaml}}}");
    let settings = tollgate_policy::compile(file.as_bytes()).unwrap().settings;
    Access::new(&settings, |_| value.map(Into::into))
}

#[test]
fn a_token_may_have_spaces_around_it() {
    for value in ["s3cret", "s3cret\n", " s3cret "] {
        let access = access("{env: X}", Some(value)).unwrap();
        assert!(access.token.unwrap().matches(b"s3cret"), "{value:?}");
    }
}

#[test]
fn a_token_that_no_client_could_send_is_refused_and_not_shown() {
    for (yaml, value) in
        [("{env: X}", Some("two words")), ("{env: X}", Some("gehéim")), ("{env: X}", Some(" "))]
    {
        let error = access(yaml, value).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("no client could send it"), "{shown}");
        assert!(!shown.contains("two words") && !shown.contains("gehéim"), "{shown}");
    }
}

#[test]
fn the_scheme_is_bearer_in_any_case() {
    assert_eq!(bearer_token(b"Bearer abc"), Some(&b"abc"[..]));
    assert_eq!(bearer_token(b"bEARER  abc "), Some(&b"abc"[..]));
    for other in ["", "abc", "Bearer", "Basic abc", "Bearerabc"] {
        assert_eq!(bearer_token(other.as_bytes()), None, "{other}");
    }
}
