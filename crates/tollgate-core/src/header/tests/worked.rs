//! The six worked examples, byte for byte. Where an example names an algorithm, its figures come
//! from that algorithm.

use super::{NOON_18_US, lines, row};
use crate::algorithm::{Concurrency, FixedWindow, Gcra};
use crate::header::{HeaderLines, Problem, Profile, Quota, Row, Unit};
use crate::{Algorithm, Intent, Rate};
use std::string::{String, ToString};

const NOON_US: u64 = 1_794_744_000_000_000;
const PARTITION: [u8; 12] =
    [0xea, 0x3f, 0xd4, 0x3b, 0xe1, 0xe5, 0x7d, 0x62, 0xe1, 0x63, 0xda, 0xe1];

/// The row after `used` units and then `cost`, all at one instant.
fn after<'a, A: Algorithm>(name: &'a str, limit: A, now_us: u64, used: u64, cost: u64) -> Row<'a> {
    let mut state = A::State::default();
    limit.charge(&mut state, now_us, used);
    Row::new(name, limit.window_us(), &limit.decide(&state, now_us, cost, Intent::Take))
}

fn fixed(count: u64, period_s: u64) -> FixedWindow {
    FixedWindow::new(Rate::try_new(count, period_s * 1_000_000).unwrap())
}

fn body(problem: Problem, violated: &[&str]) -> String {
    let mut out = String::new();
    problem.render(violated.iter().copied(), &mut out);
    out
}

fn retry_after(row: &Row<'_>) -> String {
    let mut fields = HeaderLines::new();
    fields.push_retry_after(row.retry_after_us.unwrap());
    let (name, value) = fields.iter().next().unwrap();
    std::format!("{name}: {value}\r\n")
}

#[test]
fn first_allowed() {
    let rows = [after("default", fixed(100, 60), NOON_18_US, 40, 1)];
    assert_eq!(
        lines(Profile::Draft11, &rows, NOON_18_US),
        "RateLimit-Policy: \"default\";q=100;w=60\r\nRateLimit: \"default\";r=59;t=42\r\n"
    );
}

#[test]
fn second_two_policies_with_a_partition() {
    let rows = [
        after("burst", fixed(20, 1), NOON_US, 0, 1).partition(&PARTITION),
        after("daily", fixed(5_000, 86_400), NOON_US, 0, 1).partition(&PARTITION),
    ];
    assert_eq!(
        lines(Profile::Draft11, &rows, NOON_US),
        "RateLimit-Policy: \"burst\";q=20;w=1;pk=:6j/UO+HlfWLhY9rh:, \
         \"daily\";q=5000;w=86400;pk=:6j/UO+HlfWLhY9rh:\r\n\
         RateLimit: \"burst\";r=19;t=1;pk=:6j/UO+HlfWLhY9rh:, \
         \"daily\";r=4999;t=43200;pk=:6j/UO+HlfWLhY9rh:\r\n"
    );
}

#[test]
fn third_denied() {
    let limit = Gcra::try_new(Rate::try_new(5, 1_000_000).unwrap(), Some(10)).unwrap();
    let row = after("api", limit, NOON_US, 10, 1);
    assert!(row.refused);
    assert_eq!(retry_after(&row), "Retry-After: 1\r\n");
    assert_eq!(
        lines(Profile::Draft11, &[row], NOON_US),
        "RateLimit-Policy: \"api\";q=10;w=2\r\nRateLimit: \"api\";r=0;t=1\r\n"
    );
    let body = body(Problem::QuotaExceeded, &["api"]);
    assert_eq!(
        body,
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["api"]}"#
    );
    assert_eq!(body.len(), 139);
}

#[test]
fn fourth_load_shed() {
    let row = after("default", fixed(15, 20), NOON_US, 15, 1);
    assert_eq!(Problem::TemporaryReducedCapacity.status(), 503);
    assert_eq!(retry_after(&row), "Retry-After: 20\r\n");
    assert_eq!(
        lines(Profile::Draft11, &[row], NOON_US),
        "RateLimit-Policy: \"default\";q=15;w=20\r\nRateLimit: \"default\";r=0;t=20\r\n"
    );
    let body = body(Problem::TemporaryReducedCapacity, &["default"]);
    assert_eq!(
        body,
        r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503,"violated-policies":["default"]}"#
    );
    assert_eq!(body.len(), 167);
}

#[test]
fn fifth_units_and_a_name_to_escape() {
    let slots = Concurrency::try_new(8, 30_000_000).unwrap();
    let rows = [
        after("up\"load", fixed(65_536, 10), NOON_US, 0, 536).unit(Unit::ContentBytes),
        after("inflight", slots, NOON_US, 2, 1).unit(Unit::ConcurrentRequests),
    ];
    assert_eq!(
        lines(Profile::Draft11, &rows, NOON_US),
        "RateLimit-Policy: \"up\\\"load\";q=65536;qu=\"content-bytes\";w=10, \
         \"inflight\";q=8;qu=\"concurrent-requests\"\r\n\
         RateLimit: \"up\\\"load\";r=65000;t=10, \"inflight\";r=5\r\n"
    );
}

#[test]
fn sixth_older_generations() {
    let rows = [after("default", fixed(100, 60), NOON_18_US, 40, 1)];
    let expect = |profile, text: &str| assert_eq!(lines(profile, &rows, NOON_18_US), text);
    expect(
        Profile::Draft6,
        "RateLimit-Policy: 100;w=60\r\nRateLimit-Limit: 100\r\nRateLimit-Remaining: 59\r\n\
         RateLimit-Reset: 42\r\n",
    );
    expect(
        Profile::RateLimit,
        "RateLimit-Limit: 100\r\nRateLimit-Remaining: 59\r\nRateLimit-Reset: 42\r\n",
    );
    expect(
        Profile::Draft7,
        "RateLimit-Policy: 100;w=60\r\nRateLimit: limit=100, remaining=59, reset=42\r\n",
    );
    // In these two profiles the policy is an addition.
    expect(
        Profile::XRateLimitEpoch,
        "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 59\r\nX-RateLimit-Reset: 1794744060\r\n\
         X-RateLimit-Policy: 100;w=60\r\n",
    );
    expect(
        Profile::XRateLimitDelta,
        "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 59\r\nX-RateLimit-Reset: 42\r\n\
         X-RateLimit-Policy: 100;w=60\r\n",
    );
}

#[test]
fn github_and_discord() {
    assert_eq!(
        lines(Profile::GitHub, &[row("core")], NOON_18_US),
        "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 59\r\nX-RateLimit-Used: 41\r\n\
         X-RateLimit-Reset: 1794744060\r\nX-RateLimit-Resource: core\r\n"
    );
    let mut row = row("core");
    row.reset_after_us = 1_250_000;
    assert_eq!(
        lines(Profile::Discord, &[row], NOON_18_US),
        "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 59\r\nX-RateLimit-Reset: 1794744019.25\r\n\
         X-RateLimit-Reset-After: 1.25\r\nX-RateLimit-Bucket: 0123456789abcdef\r\n"
    );
}

#[test]
fn a_refusal_has_what_clients_look_for_behind_the_base() {
    let (mut base, mut whole) = (String::new(), String::new());
    Problem::QuotaExceeded.render(["api"], &mut base);
    let quota = Quota::new(10, Some(2_000_000), Some(10));
    Problem::QuotaExceeded.render_refusal(429, ["api"], Some(1), Some(&quota), &mut whole);
    let more = whole.strip_prefix(base.trim_end_matches('}')).unwrap();
    assert_eq!(
        more,
        r#","error":"rate_limit_exceeded","message":"Too many requests. Retry after 1 seconds.","retry_after":1,"limit":10,"window":2,"burst":10}"#
    );
    let mut slots = String::new();
    Problem::QuotaExceeded.render_refusal(
        429,
        ["a"],
        None,
        Some(&Quota::new(8, None, None)),
        &mut slots,
    );
    assert!(slots.ends_with(
        r#""message":"Too many requests.","retry_after":null,"limit":8,"window":null}"#
    ));
    let mut hidden = String::new();
    Problem::QuotaExceeded.render_refusal(429, [], Some(1), None, &mut hidden);
    assert!(hidden.ends_with(r#""status":429}"#), "{hidden}");
}

#[test]
fn third_problem_type_and_escapes() {
    let login = body(Problem::AbnormalUsageDetected, &["login"]);
    assert_eq!(
        login,
        r#"{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":429,"violated-policies":["login"]}"#
    );
    assert_eq!(login.len(), 159);
    let odd = body(Problem::QuotaExceeded, &["a\"b\\c", "d\n\u{1f}é"]);
    assert!(odd.ends_with(r#""violated-policies":["a\"b\\c","d\u000a\u001fé"]}"#), "{odd}");
    let undisclosed = body(Problem::QuotaExceeded, &[]);
    assert!(undisclosed.ends_with(r#""status":429}"#), "{undisclosed}");
    assert_eq!(Problem::MEDIA_TYPE.to_string(), "application/problem+json");
}
