use super::{AllowedHosts, is_public_origin};
use hyper::header::HOST;
use hyper::{Request, http::request::Parts};

fn head(host: &str) -> Parts {
    Request::builder().uri("/metrics").header(HOST, host).body(()).unwrap().into_parts().0
}

#[test]
fn names_that_no_page_can_have_are_answered() {
    let hosts = AllowedHosts::new(&["tollgate.example.com".into(), "*.corp.example".into()]);
    for host in [
        "127.0.0.1:8090",
        "127.0.0.1",
        "10.0.0.7:8090",
        "[::1]:8090",
        "[::1]",
        "[2001:db8::1]:80",
        "localhost:8090",
        "LOCALHOST",
        "localhost.",
        "a.localhost:1",
        "tollgate:8090",
        "tollgate.monitoring.svc:8090",
        "tollgate.monitoring.svc.cluster.local",
        "ip-10-0-0-7.eu-central-1.compute.internal",
        "tollgate.example.com",
        "Tollgate.Example.com.:8090",
        "a.corp.example",
        "a.b.corp.example:1",
    ] {
        assert_eq!(hosts.disallowed_host(&head(host)), None, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:8090",
        "corp.example",
        "xcorp.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "1.2.3",
        "[evil.example]",
        "evil.local",
        "",
        ":8090",
        "a b",
    ] {
        assert_eq!(hosts.disallowed_host(&head(host)), Some(host), "{host}");
    }
    let any = AllowedHosts::new(&["*".into()]);
    assert_eq!(any.disallowed_host(&head("evil.example")), None);
    let mut none = head("x");
    none.headers.clear();
    assert_eq!(AllowedHosts::default().disallowed_host(&none), None);
    let target = Request::builder().uri("http://evil.example/metrics").header(HOST, "localhost");
    let (target, ()) = target.body(()).unwrap().into_parts();
    assert_eq!(AllowedHosts::default().disallowed_host(&target), Some("evil.example"));
}

#[test]
fn pages_are_told_from_programs() {
    for origin in
        ["http://localhost:3000", "http://127.0.0.1:8081", "http://[::1]", "https://tollgate"]
    {
        assert!(!is_public_origin(origin.as_bytes()), "{origin}");
    }
    for origin in [
        "http://evil.example:8081",
        "https://evil.example",
        "null",
        "",
        "chrome-extension://abcdef",
        "http://evil\u{e9}.example",
    ] {
        assert!(is_public_origin(origin.as_bytes()), "{origin}");
    }
    assert!(is_public_origin(b"http://\xff"), "not text");
}
