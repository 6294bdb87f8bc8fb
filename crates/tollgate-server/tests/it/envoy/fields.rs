//! Statuses, bodies and headers that clients get.

use super::*;

#[test]
fn a_client_is_admitted_then_refused_with_our_fields() {
    let node = Node::start(&policy(), &[]);
    let envoy = Envoy::start(node.address(), patient);
    let key = [("x-api-key", "k1")];
    for left in [4, 3, 2, 1, 0] {
        let answer = envoy.get("/", &key);
        assert_eq!((answer.status, &*answer.body), (200, "hi"));
        let limits = field(&answer, "ratelimit").unwrap();
        assert!(limits.contains(&format!("\"per-key\";r={left};")), "{limits}");
        assert!(field(&answer, "x-ratelimit-limit").is_none(), "Envoy's own are off");
    }
    let answer = envoy.get("/", &key);
    assert_eq!(answer.status, 429);
    assert_eq!(field(&answer, "content-type"), Some("application/problem+json"));
    assert_eq!(field(&answer, "x-envoy-ratelimited"), Some("true"));
    let wait: u64 = field(&answer, "retry-after").unwrap().parse().unwrap();
    assert!((1..=17_280).contains(&wait), "a fifth of a day at most: {wait}");
    assert_eq!(answer.json()["violated-policies"][0], "per-key");
    assert_eq!(envoy.get("/", &[("x-api-key", "k2")]).status, 200, "another key");
    assert_eq!(envoy.get("/", &[]).status, 200, "no key, no descriptor");
    assert_eq!((envoy.stat("ratelimit.ok"), envoy.stat("ratelimit.over_limit")), (7, 1));
    assert_eq!(envoy.stat("ratelimit.error"), 0);
}

#[test]
fn envoys_own_fields_are_right_too() {
    let files = [(
        "edge.yml",
        "{domain: edge, descriptors: [{key: api_key, rate_limit: {name: per-key, unit: year, requests_per_unit: 2}}]}",
    )];
    let node = Node::start("headers: none\nenvoy: {configs: edge.yml}", &files);
    let own = |file: String| {
        let header = "enable_x_ratelimit_headers: \"OFF\"";
        assert!(file.contains(header));
        let on = "enable_x_ratelimit_headers: DRAFT_VERSION_03\n                      enable_retry_after_header: true";
        patient(file).replace(header, on)
    };
    let envoy = Envoy::start(node.address(), own);
    let key = [("x-api-key", "k1")];
    for left in ["1", "0"] {
        let answer = envoy.get("/", &key);
        assert_eq!(answer.status, 200);
        assert_eq!(field(&answer, "x-ratelimit-limit"), Some("2, 2;w=31536000;name=\"per-key\""));
        assert_eq!(field(&answer, "x-ratelimit-remaining"), Some(left));
        let reset: u64 = field(&answer, "x-ratelimit-reset").unwrap().parse().unwrap();
        assert!((1..=31_536_000).contains(&reset));
        assert!(field(&answer, "ratelimit").is_none());
    }
    let answer = envoy.get("/", &key);
    assert_eq!((answer.status, field(&answer, "x-ratelimit-remaining")), (429, Some("0")));
    assert!(field(&answer, "retry-after").is_some());
}

#[test]
fn every_profile_goes_through() {
    let limits = "limits: [{name: per-key, key: [descriptor.api_key], rate: 9/365d, algorithm: fixed-window}]";
    for (profile, name) in [
        ("draft-11", "ratelimit-policy"),
        ("draft-7", "ratelimit"),
        ("draft-6", "ratelimit-remaining"),
        ("ratelimit", "ratelimit-reset"),
        ("x-ratelimit-delta", "x-ratelimit-reset"),
        ("x-ratelimit-epoch", "x-ratelimit-reset"),
        ("github", "x-ratelimit-used"),
        ("discord", "x-ratelimit-bucket"),
    ] {
        let node = Node::start(&format!("headers: {profile}\n{limits}"), &[]);
        let envoy = Envoy::start(node.address(), patient);
        let answer = envoy.get("/", &[("x-api-key", "k")]);
        assert!(field(&answer, name).is_some(), "{profile}: {:?}", answer.fields);
    }
}

/// The filter's metadata has the decision, for other filters of Envoy.
#[test]
fn the_limit_that_decided_is_in_the_metadata() {
    let node = Node::start(&policy(), &[]);
    let shown = |file: String| {
        let route = "domains: [\"*\"]\n";
        assert!(file.contains(route));
        let name = "envoy.filters.http.ratelimit:tollgate";
        let fields = format!(
            "{route}                      response_headers_to_add:
                        - {{header: {{key: x-decided-by, value: '%DYNAMIC_METADATA({name}:limit)%'}}}}
                        - {{header: {{key: x-decided-where, value: '%DYNAMIC_METADATA({name}:source)%'}}}}
"
        );
        patient(file).replace(route, &fields)
    };
    let envoy = Envoy::start(node.address(), shown);
    let answer = envoy.get("/", &[]);
    assert_eq!((answer.status, field(&answer, "x-decided-by")), (200, Some("per-address")));
    assert_eq!(field(&answer, "x-decided-where"), Some("memory"));
    let answers = [(); 6].map(|()| envoy.get("/", &[("x-api-key", "k")]));
    assert_eq!(answers[5].status, 429);
    assert_eq!(field(&answers[0], "x-decided-by"), Some("per-key"), "the tightest");
}
