use super::*;

fn found(yaml: &str, value: Option<&str>) -> Result<String, SecretError> {
    let file = format!("resp: {{password: {yaml}}}");
    let settings = tollgate_policy::compile(file.as_bytes()).unwrap().settings;
    resolve(&settings.resp_password.unwrap(), "resp.password", |name| {
        assert_eq!(name, "X");
        value.map(OsString::from)
    })
}

#[test]
fn a_secret_comes_from_the_file_or_the_environment() {
    assert_eq!(found("s3cret", None).unwrap(), "s3cret");
    assert_eq!(found("{env: X}", Some("s3cret")).unwrap(), "s3cret");
    assert_eq!(found("{env: X}", Some("s3cret\r\n")).unwrap(), "s3cret");
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    for value in [None, Some(""), Some("\n")] {
        let error = found("{env: X}", value).unwrap_err().to_string();
        assert!(error.contains("variable X,") && error.contains("`resp.password`"), "{error}");
    }
}

#[test]
fn only_the_whole_secret_matches() {
    let digest = SecretDigest::new(b"s3cret");
    assert!(digest.matches(b"s3cret"));
    for other in ["", "s", "s3cre", "s3crets", "S3CRET", "s3cret "] {
        assert!(!digest.matches(other.as_bytes()), "{other:?}");
    }
}

#[test]
fn neither_its_debug_form_nor_its_fingerprint_shows_it() {
    let digest = SecretDigest::new(b"s3cret");
    assert_eq!(digest.fingerprint(), format!("{digest:?}"));
    assert_eq!(digest.fingerprint().len(), "sha256:".len() + 8);
    assert_ne!(digest.fingerprint(), SecretDigest::new(b"s3cret2").fingerprint());
}
