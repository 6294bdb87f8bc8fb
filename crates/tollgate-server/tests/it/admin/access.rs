//! Access to the admin API.

use super::{Desk, POLICY, TOKEN};
use crate::exposition::Page;

const PROTECTED: [(&str, &str); 8] = [
    ("GET", "/v1/policy"),
    ("POST", "/v1/inspect"),
    ("POST", "/v1/reset"),
    ("POST", "/v1/block"),
    ("POST", "/v1/unblock"),
    ("POST", "/v1/reload"),
    ("PUT", "/v1/limits/per-user/mode"),
    ("DELETE", "/v1/limits/per-user/mode"),
];

fn denied(desk: &Desk, reason: &str) -> Option<f64> {
    let page = desk.call_with("GET", "/metrics", &[], "");
    let page = Page::prometheus(&page.text).unwrap();
    page.value("tollgate_admin_denied_total", &[("reason", reason)])
}

#[test]
fn health_and_metrics_are_for_everybody() {
    for policy in [POLICY, "limits: []"] {
        let desk = Desk::with(policy);
        desk.node.health.set_serving(true);
        for path in ["/healthz", "/readyz", "/metrics"] {
            let answer = desk.call_with("GET", path, &[], "");
            assert_eq!(
                (answer.status, answer.header("cache-control")),
                (200, "no-store"),
                "{path}"
            );
            let head = desk.call_with("HEAD", path, &[], "");
            assert_eq!(head.status, 200, "{path}");
        }
    }
}

#[test]
fn without_a_configured_token_nobody_is_let_in_and_told_how_to_set_one() {
    let desk = Desk::with("limits: [{name: per-user, rate: 1/s}]");
    for (method, path) in PROTECTED {
        for fields in [&[][..], &[("authorization", "Bearer s3cret-token")]] {
            let answer = desk.call_with(method, path, fields, "");
            assert_eq!(answer.status, 403, "{path}");
            assert!(
                answer.text.contains("admin: {token: {env: TOLLGATE_ADMIN_TOKEN}}"),
                "{answer:?}"
            );
            assert_eq!(answer.header("content-type"), "application/problem+json");
        }
    }
    assert_eq!(denied(&desk, "disabled"), Some(16.0));
}

#[test]
fn only_the_token_opens() {
    for (method, path) in PROTECTED {
        let desk = Desk::new();
        let bearer = format!("Bearer {TOKEN}");
        let basic = format!("Basic {TOKEN}");
        let once = [("authorization", &*bearer)];
        let twice = [("authorization", &*bearer), ("authorization", &*bearer)];
        let wrong = [("authorization", "Bearer s3cret-toke")];
        let other = [("authorization", &*basic)];
        for (fields, reason) in
            [(&[][..], "missing"), (&twice, "missing"), (&wrong, "wrong"), (&other, "wrong")]
        {
            let before = denied(&desk, reason).unwrap();
            let answer = desk.call_with(method, path, fields, "");
            assert_eq!(answer.status, 401, "{method} {path} {fields:?}");
            assert!(answer.header("www-authenticate").starts_with("Bearer "), "{answer:?}");
            assert!(!answer.text.contains(TOKEN), "{answer:?}");
            assert_eq!(denied(&desk, reason), Some(before + 1.0));
        }
        let answer = desk.call_with(method, path, &once, "");
        assert!(!matches!(answer.status, 401 | 403), "{method} {path} {answer:?}");
    }
}

#[test]
fn an_address_that_tries_tokens_waits_even_with_the_right_one() {
    let desk = Desk::new();
    let wrong = [("authorization", "Bearer guess")];
    let bearer = format!("Bearer {TOKEN}");
    let right = [("authorization", &*bearer)];
    for _ in 0..10 {
        assert_eq!(desk.call_with("GET", "/v1/policy", &wrong, "").status, 401);
    }
    for fields in [&wrong, &right] {
        let answer = desk.call_with("GET", "/v1/policy", fields, "");
        assert_eq!(answer.status, 429, "{answer:?}");
        let seconds: u64 = answer.header("retry-after").parse().unwrap();
        assert!((1..=6).contains(&seconds), "{seconds}");
    }
    assert_eq!(denied(&desk, "limited"), Some(2.0));
    let answer = desk.call_from("192.0.2.2:5000", "GET", "/v1/policy", &right, "");
    assert_eq!(answer.status, 200, "another address does not wait");
    assert_eq!(desk.call_with("GET", "/healthz", &[], "").status, 200);
}

#[test]
fn the_right_token_clears_the_count() {
    let desk = Desk::new();
    let wrong = [("authorization", "Bearer guess")];
    for _ in 0..5 {
        for _ in 0..9 {
            assert_eq!(desk.call_with("GET", "/v1/policy", &wrong, "").status, 401);
        }
        assert_eq!(desk.call("GET", "/v1/policy", "").status, 200);
    }
}

#[test]
fn another_file_brings_another_token() {
    use tollgate_server::front::admin::Access;
    let desk = Desk::new();
    let file = tollgate_policy::compile(b"admin: {token: {env: NEW}}").unwrap();
    let missing = Access::new(&file.settings, |_| None).unwrap_err();
    assert!(missing.to_string().contains("NEW"), "{missing}");
    let access = Access::new(&file.settings, |_| Some("fresh".into())).unwrap();
    desk.admin.set_access(access);
    assert_eq!(desk.call("GET", "/v1/policy", "").status, 401);
    let fresh = [("authorization", "Bearer fresh")];
    assert_eq!(desk.call_with("GET", "/v1/policy", &fresh, "").status, 200);
}
