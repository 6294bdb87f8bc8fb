//! A page on the Internet whose name comes to resolve to this machine is not served.

use super::{Desk, POLICY, TOKEN};
use crate::exposition::Page;

const PATHS: [(&str, &str); 5] = [
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/v1/policy"),
    ("POST", "/v1/reload"),
];

#[test]
fn names_that_a_page_can_have_are_not_answered() {
    let desk = Desk::new();
    desk.node.health.set_serving(true);
    let bearer = format!("Bearer {TOKEN}");
    for (method, path) in PATHS {
        let call = |host: &str| {
            let fields = [("host", host), ("authorization", &bearer)];
            desk.call_with(method, path, &fields, "")
        };
        let answer = call("evil.example:8090");
        assert_eq!((answer.status, answer.header("cache-control")), (421, "no-store"), "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
        assert!(answer.text.contains("admin.hosts") && answer.text.contains("`evil.example:8090`"));
        for host in ["localhost:8090", "127.0.0.1:8090", "[::1]:8090", "10.1.2.3:8090", "tollgate"]
        {
            assert_eq!(call(host).status, 200, "{path} of {host}");
        }
    }
    let page = desk.call_with("GET", "/metrics", &[], "");
    let page = Page::prometheus(&page.text).unwrap();
    assert_eq!(page.value("tollgate_admin_denied_total", &[("reason", "host")]), Some(5.0));
}

/// Guesses from a page would make the operator's own address wait.
#[test]
fn tokens_that_a_page_tries_are_not_looked_at() {
    let desk = Desk::new();
    for _ in 0..50 {
        let fields = [("host", "evil.example"), ("authorization", "Bearer guess")];
        assert_eq!(desk.call_with("GET", "/v1/policy", &fields, "").status, 421);
    }
    assert_eq!(desk.call("GET", "/v1/policy", "").status, 200);
}

#[test]
fn names_can_be_added() {
    let admin = "admin: {hosts: [tollgate.example.com, '*.corp.example'], token";
    let desk = Desk::with(&POLICY.replace("admin: {token", admin));
    for (host, status) in [
        ("Tollgate.example.com:8090", 200),
        ("a.corp.example", 200),
        ("corp.example", 421),
        ("other.example.com", 421),
    ] {
        let answer = desk.call_with("GET", "/healthz", &[("host", host)], "");
        assert_eq!(answer.status, status, "{host}: {}", answer.text);
    }
}
