//! Verdicts to response heads and bodies.

use super::RateLimitHeaders;
use crate::{HttpDecision, HttpGate, Standalone, header_name};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tollgate::engine::{Gate, GateSetup, policy};
use tollgate::{ManualClock, MemoryStore};
use tollgate_core::header::Profile;

/// Eighteen seconds after the start of a minute.
const NOW_US: u64 = 1_794_744_018_000_000;

pub(super) fn toll(policy: &str) -> HttpGate<Standalone> {
    let compiled = policy::compile(policy.as_bytes()).expect("a good policy");
    let gate = Gate::new(GateSetup::of(&compiled), MemoryStore::default()).expect("a policy");
    HttpGate::new(Arc::new(Standalone::new(gate).with_clock(ManualClock::new(NOW_US))))
}

pub(super) fn ask(
    toll: &HttpGate<Standalone>,
    fields: &[(&str, &str)],
) -> HttpDecision<Standalone> {
    ask_for(toll, "/", fields)
}

fn ask_for(
    toll: &HttpGate<Standalone>,
    path: &str,
    fields: &[(&str, &str)],
) -> HttpDecision<Standalone> {
    let mut request = Request::get(path);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut head = request.body(()).expect("a request").into_parts().0;
    let future = pin!(toll.check(&mut head, None));
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("memory never waits"),
    }
}

pub(super) fn map(fields: &[(&str, &str)]) -> HeaderMap {
    let parse = |(name, value): &(&str, &str)| {
        let name: HeaderName = name.parse().expect("a name");
        (name, HeaderValue::from_str(value).expect("a value"))
    };
    fields.iter().map(parse).collect()
}

pub(super) fn shown(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let mut all: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().expect("printable")))
        .collect();
    all.sort_unstable();
    all
}

pub(super) type ExpectedHeaders = &'static [(&'static str, &'static str)];

const NOTHING: &str = "headers: [draft-11]\nlimits: [{name: api, rate: 0/min}]";
const ONE: &str =
    "headers: [draft-11]\nlimits: [{name: \"a<b\", rate: 1/min, algorithm: fixed-window}]";
const HIDDEN: &str = "headers: [draft-11]\nlimits: [{name: login, rate: 1/min, algorithm: fixed-window, disclose: false}]";
const BLOCKED: &str = "headers: [none]\nlimits: [{name: api, rate: 1/min, algorithm: fixed-window, penalty: {after: 1, block: 5m}}]";
const TEXT: &str = "headers: [none]\nrefusal: {body: '{status}: again in {retry_after} s. {limits} {no brace'}\nlimits: [{name: \"a<b\", rate: 1/min, algorithm: fixed-window}]";
const FIGURES: &str = "headers: [none]\nrefusal: {body: '{limit} in {window} s'}\nlimits: [{name: a, rate: 1/min, algorithm: fixed-window}]";
const FIGURES_HIDDEN: &str = "headers: [none]\nrefusal: {body: '{limit} in {window} s'}\nlimits: [{name: a, rate: 1/min, algorithm: fixed-window, disclose: false}]";
const BURST: &str = "headers: [none]\nlimits: [{name: api, rate: 5/s, burst: 2, algorithm: gcra}]";
const TWO: &str = "headers: [none]\nlimits: [{name: a, rate: 1/min, algorithm: fixed-window}, {name: b, rate: 1/10min, algorithm: fixed-window}]";
const HTML: &str = "headers: [none]\nrefusal: {body: '<p>{limits}</p>', content_type: text/html}\nlimits: [{name: \"a<b\", rate: 1/min, algorithm: fixed-window}]";

/// Policy, request headers, status, media type, `Retry-After`, body.
#[expect(clippy::type_complexity, reason = "a table")]
const REFUSALS: &[(&str, ExpectedHeaders, u16, &str, Option<&str>, &str)] = &[
    (
        ONE,
        &[],
        429,
        "application/problem+json",
        Some("42"),
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["a<b"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after 42 seconds.","retry_after":42,"limit":1,"window":60}"#,
    ),
    (
        NOTHING,
        &[("accept", "*/*")],
        429,
        "application/problem+json",
        None,
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["api"],"error":"rate_limit_exceeded","message":"Too many requests.","retry_after":null,"limit":0,"window":60}"#,
    ),
    (
        ONE,
        &[("accept", "application/json")],
        429,
        "application/json",
        Some("42"),
        r#"{"error":"rate_limit_exceeded","message":"Too many requests. Retry after 42 seconds.","retry_after":42}"#,
    ),
    (
        ONE,
        &[("accept", "text/html, Application/JSON;q=0.5")],
        429,
        "application/json",
        Some("42"),
        r#"{"error":"rate_limit_exceeded","message":"Too many requests. Retry after 42 seconds.","retry_after":42}"#,
    ),
    (
        ONE,
        &[("accept", "application/json;q=0.0")],
        429,
        "application/problem+json",
        Some("42"),
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["a<b"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after 42 seconds.","retry_after":42,"limit":1,"window":60}"#,
    ),
    (
        ONE,
        &[("accept", "application/json, application/problem+json")],
        429,
        "application/problem+json",
        Some("42"),
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["a<b"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after 42 seconds.","retry_after":42,"limit":1,"window":60}"#,
    ),
    (
        NOTHING,
        &[("accept", "application/json")],
        429,
        "application/json",
        None,
        r#"{"error":"rate_limit_exceeded","message":"Too many requests.","retry_after":null}"#,
    ),
    (
        HIDDEN,
        &[],
        429,
        "application/problem+json",
        Some("42"),
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429}"#,
    ),
    (
        BLOCKED,
        &[],
        429,
        "application/problem+json",
        Some("300"),
        r#"{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":429,"violated-policies":["api"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after 300 seconds.","retry_after":300,"limit":1,"window":60}"#,
    ),
    (TEXT, &[], 429, "text/plain; charset=utf-8", Some("42"), "429: again in 42 s. a<b {no brace"),
    (FIGURES, &[], 429, "text/plain; charset=utf-8", Some("42"), "1 in 60 s"),
    (FIGURES_HIDDEN, &[], 429, "text/plain; charset=utf-8", Some("42"), " in  s"),
    (
        BURST,
        &[],
        429,
        "application/problem+json",
        Some("1"),
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["api"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after 1 seconds.","retry_after":1,"limit":2,"window":1,"burst":2}"#,
    ),
    (
        TWO,
        &[],
        429,
        "application/problem+json",
        Some("582"),
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["a","b"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after 582 seconds.","retry_after":582,"limit":1,"window":600}"#,
    ),
    (HTML, &[("accept", "application/json")], 429, "text/html", Some("42"), "<p>a&lt;b</p>"),
    (ONE, &[("content-type", "application/grpc+proto")], 200, "application/grpc", Some("42"), ""),
    (
        ONE,
        &[("content-type", "application/grpc-web")],
        429,
        "application/problem+json",
        Some("42"),
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["a<b"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after 42 seconds.","retry_after":42,"limit":1,"window":60}"#,
    ),
];

#[test]
fn refusals_are_put_into_words() {
    for (file, fields, status, kind, retry_after, body) in REFUSALS {
        let toll = toll(file);
        let request = map(fields);
        let refusal = (0..4).find_map(|_| match ask(&toll, fields) {
            HttpDecision::Refused(refusal) => Some(refusal),
            HttpDecision::Admitted(_) | HttpDecision::Ambiguous(_) => None,
        });
        let response = refusal.expect("a refusal").into_response(&request);
        let headers = response.headers();
        let field = |name: &str| headers.get(name).map(|value| value.to_str().expect("printable"));
        assert_eq!(response.status(), *status, "{file} {fields:?}");
        assert_eq!(field("content-type"), Some(*kind), "{file} {fields:?}");
        assert_eq!(field("retry-after"), *retry_after, "{file} {fields:?}");
        assert_eq!(field("cache-control"), Some("no-store"), "{file} {fields:?}");
        assert_eq!(response.body(), body.as_bytes(), "{file} {fields:?}");
        let grpc = (*kind == "application/grpc").then_some("8");
        assert_eq!(field("grpc-status"), grpc, "{file} {fields:?}");
        if *file == HIDDEN {
            assert_eq!(field("ratelimit"), None);
        }
    }
}

#[test]
fn the_source_is_named_where_it_is_not_the_usual_one() {
    let toll = toll(BLOCKED);
    let sources: Vec<_> = (0..2)
        .map(|_| match ask(&toll, &[]) {
            HttpDecision::Admitted(pass) => {
                pass.respond(Response::new(String::new())).into_parts().0.headers
            }
            HttpDecision::Refused(refusal) => {
                refusal.into_response(&HeaderMap::new()).into_parts().0.headers
            }
            HttpDecision::Ambiguous(_) => unreachable!("the request has one reading"),
        })
        .map(|headers| headers.get("x-tollgate-source").cloned())
        .collect();
    assert_eq!(sources, [None, Some(HeaderValue::from_static("blocked"))]);
}

#[test]
fn every_field_has_a_name_to_send() {
    let fields = Profile::ALL.into_iter().flat_map(|profile| profile.fields().iter().copied());
    for field in fields.chain(["Retry-After", "X-Tollgate-Source", "Another-Field"]) {
        assert_eq!(header_name(field).unwrap().as_str(), field.to_ascii_lowercase());
    }
    assert_eq!(header_name("not a name"), None);
}

#[test]
fn every_field_of_a_profile_may_meet_one_of_the_service() {
    let fields = Profile::ALL.into_iter().flat_map(|profile| profile.fields().iter().copied());
    assert!(
        fields
            .chain(["X-Tollgate-Source", "x-ratelimit-other"])
            .all(RateLimitHeaders::is_rate_limit_header)
    );
    assert!(
        !["Retry-After", "X-Rate", "Rate\u{e9}Limit", ""]
            .into_iter()
            .any(RateLimitHeaders::is_rate_limit_header)
    );
}

#[test]
fn lines_say_what_a_map_of_fields_does() {
    let policy =
        "headers: [draft-11, github]\nlimits: [{name: a, rate: 5/min}, {name: b, rate: 9/h}]";
    let HttpDecision::Admitted(pass) = ask(&toll(policy), &[]) else { panic!("refused") };
    let (mut lines, mut map) = (Vec::new(), HeaderMap::new());
    pass.headers().write_lines(&mut lines);
    pass.headers().write(&mut map);
    let text: String = map
        .iter()
        .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()))
        .collect();
    assert!(!text.is_empty());
    assert_eq!(String::from_utf8(lines).unwrap(), text);
}

/// Profiles, and their headers for a key that is blocked for ten minutes while its limit resets
/// within a second.
const BLOCKS: &[(&str, ExpectedHeaders)] = &[
    ("draft-11", &[("ratelimit", "\"api\";r=0;t=600")]),
    ("draft-7", &[("ratelimit", "limit=1, remaining=0, reset=600")]),
    ("draft-6", &[("ratelimit-reset", "600"), ("ratelimit-remaining", "0")]),
    ("ratelimit", &[("ratelimit-reset", "600"), ("ratelimit-remaining", "0")]),
    ("x-ratelimit-epoch", &[("x-ratelimit-reset", "1794744618")]),
    ("x-ratelimit-delta", &[("x-ratelimit-reset", "600")]),
    ("github", &[("x-ratelimit-reset", "1794744618"), ("x-ratelimit-used", "1")]),
    ("discord", &[("x-ratelimit-reset", "1794744618"), ("x-ratelimit-reset-after", "600")]),
];

#[test]
fn the_reset_of_a_blocked_key_is_the_blocks_end_in_every_profile() {
    let rates = [
        "rate: 1/s",
        "rate: 1/s, algorithm: fixed-window",
        "rate: 1/s, algorithm: sliding-log",
        "rate: 1/s, algorithm: token-bucket",
        "rate: 1/s, algorithm: gcra",
        "rate: 1/s, algorithm: leaky-bucket",
        "rate: 1, algorithm: concurrency",
    ];
    for (rate, (profile, said)) in
        rates.iter().flat_map(|rate| BLOCKS.iter().map(move |to| (rate, to)))
    {
        let toll = toll(&format!(
            "headers: [{profile}]\nlimits: [{{name: api, {rate}, penalty: {{after: 1, block: 10m}}}}]"
        ));
        // The admission is kept: dropping it would free the slot.
        let held = ask(&toll, &[]);
        for n in 0..3 {
            let HttpDecision::Refused(refusal) = ask(&toll, &[]) else {
                panic!("{profile} {rate}: {n}")
            };
            let response = refusal.into_response(&HeaderMap::new());
            let all = shown(response.headers());
            for one in said.iter().chain(&[("retry-after", "600")]) {
                assert!(all.contains(one), "{profile}, {rate}: {one:?} in {all:?}");
            }
        }
        drop(held);
    }
}

#[test]
fn the_three_numbers_stand_beside_the_current_draft() {
    let toll = toll(
        "headers: [draft-11, ratelimit]\nlimits: [{name: a, rate: 5/min, algorithm: fixed-window}]",
    );
    let HttpDecision::Admitted(pass) = ask(&toll, &[]) else { panic!("refused") };
    let mut headers = HeaderMap::new();
    pass.headers().write(&mut headers);
    let all: ExpectedHeaders = &[
        ("ratelimit", "\"a\";r=4;t=42"),
        ("ratelimit-limit", "5"),
        ("ratelimit-policy", "\"a\";q=5;w=60"),
        ("ratelimit-remaining", "4"),
        ("ratelimit-reset", "42"),
    ];
    assert_eq!(shown(&headers), all);
    // If the upstream sends a set too, the tighter set wins. Policies stay with the draft that
    // lists them.
    let mut headers = map(&[("ratelimit-limit", "9"), ("ratelimit-remaining", "2")]);
    pass.headers().merge(&mut headers);
    let kept: ExpectedHeaders = &[
        ("ratelimit", "\"a\";r=4;t=42"),
        ("ratelimit-limit", "9"),
        ("ratelimit-policy", "\"a\";q=5;w=60"),
        ("ratelimit-remaining", "2"),
    ];
    assert_eq!(shown(&headers), kept);
    let mut headers =
        map(&[("ratelimit-limit", "9"), ("ratelimit-remaining", "7"), ("ratelimit-other", "x")]);
    pass.headers().merge(&mut headers);
    assert_eq!(shown(&headers), all);
}

/// A limit by path counts each reading of `/a;b`; lists name it once, with its tightest row.
#[test]
fn a_limit_is_listed_once_for_all_readings_of_a_path() {
    let toll = toll(
        "headers: [draft-11]\nlimits: [{name: p, key: [path], rate: 9/min, algorithm: fixed-window}]",
    );
    let listed = |path: &str| {
        let HttpDecision::Admitted(pass) = ask_for(&toll, path, &[]) else { panic!("refused") };
        let mut headers = HeaderMap::new();
        pass.headers().write(&mut headers);
        ["ratelimit", "ratelimit-policy"]
            .map(|name| headers[name].to_str().expect("printable").to_owned())
    };
    let policy = "\"p\";q=9;w=60";
    assert_eq!(listed("/zz/a"), ["\"p\";r=8;t=42", policy]);
    assert_eq!(listed("/zz/a;b"), ["\"p\";r=7;t=42", policy]);
}
