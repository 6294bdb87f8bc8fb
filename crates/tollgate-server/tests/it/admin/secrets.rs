//! Secret keys are shown and recorded as digests.

use super::Desk;

const POLICY: &str = r#"
admin: {token: s3cret-token, audit: {file: /dev/null}}
identity: {caller: header.authorization, guest: cookie.sid}
limits:
  - {name: by-token, key: [header.authorization], rate: 5/d}
  - {name: by-proxy, key: [header.proxy-authorization], rate: 5/d}
  - {name: by-caller, key: [caller], rate: 5/d}
  - {name: by-cookie, key: [cookie.session], rate: 5/d}
  - {name: by-guest, key: [guest], rate: 5/d}
  - {name: by-query, key: [query.access_token], rate: 5/d}
  - {name: by-key, key: [api_key], rate: 5/d}
  - {name: boundless, key: [header.authorization], rate: unlimited}
  - {name: by-header-key, key: [header.x-api-key, user], rate: 5/d}
"#;

const ATTRIBUTES: [&str; 8] = [
    "header.authorization",
    "header.proxy-authorization",
    "caller",
    "cookie.session",
    "guest",
    "query.access_token",
    "api_key",
    "header.x-api-key",
];

/// The first 128 bits of the SHA-256 of `Bearer hunter2`, from `sha256sum`.
const DIGEST: &str = "c13e77fb8a8c93fb73db8c9b9eb69ef5";

#[test]
fn no_secret_is_shown_or_recorded() {
    let desk = Desk::audited_with("secrets", POLICY);
    for attribute in ATTRIBUTES {
        let attributes = format!(r#"{{"{attribute}": "Bearer hunter2", "user": "42"}}"#);
        let body = format!(r#"{{"attributes": {attributes}}}"#);
        let block = format!(r#"{{"attributes": {attributes}, "for": "10m"}}"#);
        for (path, body) in [
            ("/v1/inspect", &body),
            ("/v1/block", &block),
            ("/v1/unblock", &body),
            ("/v1/reset", &body),
        ] {
            let answer = desk.call("POST", path, body);
            assert_eq!(answer.status, 200, "{attribute} {path}: {}", answer.text);
            assert!(!answer.text.contains("hunter2"), "{attribute} {path}: {}", answer.text);
        }
        let inspected = desk.call("POST", "/v1/inspect", &body);
        assert!(inspected.text.contains(DIGEST), "{attribute}: {}", inspected.text);
    }
    let lines = desk.lines();
    assert_eq!(lines.len(), 3 * ATTRIBUTES.len());
    for line in lines {
        let line = line.to_string();
        assert!(!line.contains("hunter2") && line.contains(DIGEST), "{line}");
    }
    let user = desk.call(
        "POST",
        "/v1/inspect",
        r#"{"attributes": {"header.x-api-key": "k", "user": "42"}}"#,
    );
    assert!(user.text.contains("\"42\""), "other attributes are shown: {}", user.text);
}
