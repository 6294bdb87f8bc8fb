//! A public web page whose name resolves to this machine is refused.

use super::{Desk, POLICY, TOKEN};
use crate::exposition::Page;
use hyper::{Request, Version};

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

/// HTTP/1.1 needs a `Host`; HTTP/1.0 does not.
#[test]
fn a_request_of_http_1_1_names_a_host() {
    let desk = Desk::new();
    for (path, version, status) in [
        ("/metrics", Version::HTTP_11, 400),
        ("http://localhost/metrics", Version::HTTP_11, 400),
        ("/v1/policy", Version::HTTP_11, 400),
        ("/metrics", Version::HTTP_10, 200),
    ] {
        let request = Request::builder().uri(path).version(version).body(()).unwrap();
        let answer = desk.call_head(&request.into_parts().0, "192.0.2.1:5000", "");
        assert_eq!(answer.status, status, "{path} {version:?}: {}", answer.text);
    }
}

/// Token guesses from a web page must not lock out the operator's own address.
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
