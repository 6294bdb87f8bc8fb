use super::decode;
use hyper::Request;
use tollgate_policy::policy::{Policy, PolicyOptions};

/// A call without method or URI may come from a client, if `trusted_proxies` has its address.
#[test]
fn the_log_names_trusted_proxies_if_headers_are_missing() {
    let policy = Policy::new(Vec::new(), PolicyOptions::default()).unwrap();
    for name in ["x-forwarded-method", "x-forwarded-uri", "x-other"] {
        let head = Request::builder().uri("/v1/forward-auth").header(name, "/");
        let (head, ()) = head.body(()).unwrap().into_parts();
        let why = decode::read_request(head, &policy, Default::default()).err().unwrap();
        assert!(why.to_string().contains("`trusted_proxies`"), "{name}: {why}");
    }
}

/// Some proxies append the client's query to the called path, and mistakes are logged.
#[test]
fn the_log_says_nothing_of_values_in_a_query() {
    let policy = Policy::new(Vec::new(), PolicyOptions::default()).unwrap();
    let wrong = |query: &str| {
        let head = Request::builder()
            .uri(format!("/v1/forward-auth?{query}"))
            .header("x-forwarded-method", "GET")
            .header("x-forwarded-uri", "/");
        let (head, ()) = head.body(()).unwrap().into_parts();
        decode::read_request(head, &policy, Default::default()).err().unwrap().to_string()
    };
    for query in ["access_token=hunter2", "hunter2", "a=1&key=hunter2"] {
        assert!(!wrong(query).contains("hunter2"), "{query}: {}", wrong(query));
    }
    assert!(wrong("access_token=hunter2").starts_with("`access_token` is not a parameter"));
    assert!(wrong("cost=-1").starts_with("`cost=-1` is not a parameter"));
}
