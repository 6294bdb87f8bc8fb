use super::*;

fn secret(yaml: &str) -> Secret {
    let file = format!("admin: {{token: {yaml}}}");
    tollgate_policy::compile(file.as_bytes()).unwrap().settings.admin_token.unwrap()
}

fn resolve(yaml: &str, value: Option<&str>) -> Result<AdminToken, AdminTokenError> {
    AdminToken::resolve(&secret(yaml), |name| {
        assert_eq!(name, "X");
        value.map(Into::into)
    })
}

#[test]
fn a_token_comes_from_the_file_or_the_environment() {
    assert!(resolve("s3cret", None).unwrap().matches(b"s3cret"));
    assert!(resolve("{env: X}", Some("s3cret")).unwrap().matches(b"s3cret"));
    assert!(resolve("{env: X}", Some("s3cret\n")).unwrap().matches(b"s3cret"));
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    for value in [None, Some("")] {
        let error = resolve("{env: X}", value).unwrap_err();
        assert_eq!(error, AdminTokenError::Unset("X".into()));
        assert!(error.to_string().contains("variable X,"), "{error}");
    }
}

#[test]
fn a_token_that_no_client_could_send_is_refused_and_not_shown() {
    for (yaml, value) in
        [("two words", None), ("{env: X}", Some("gehéim")), ("{env: X}", Some(" "))]
    {
        let error = resolve(yaml, value).unwrap_err();
        assert!(matches!(error, AdminTokenError::Unsendable(_)), "{error:?}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("two words") && !shown.contains("gehéim"), "{shown}");
    }
}

#[test]
fn only_the_whole_token_is_the_token() {
    let token = AdminToken::new("s3cret").unwrap();
    for other in ["", "s", "s3cre", "s3crets", "S3CRET", "s3cret "] {
        assert!(!token.matches(other.as_bytes()), "{other:?}");
    }
}

#[test]
fn neither_its_debug_form_nor_its_fingerprint_shows_it() {
    let token = AdminToken::new("s3cret").unwrap();
    assert_eq!(token.fingerprint(), format!("{token:?}"));
    assert_eq!(token.fingerprint().len(), "sha256:".len() + 8);
    assert_ne!(token.fingerprint(), AdminToken::new("s3cret2").unwrap().fingerprint());
}

#[test]
fn the_scheme_is_bearer_in_any_case() {
    assert_eq!(bearer_token(b"Bearer abc"), Some(&b"abc"[..]));
    assert_eq!(bearer_token(b"bEARER  abc "), Some(&b"abc"[..]));
    for other in ["", "abc", "Bearer", "Basic abc", "Bearerabc"] {
        assert_eq!(bearer_token(other.as_bytes()), None, "{other}");
    }
}
