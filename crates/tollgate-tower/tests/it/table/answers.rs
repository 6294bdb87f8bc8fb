//! Responses to admitted and to refused requests.

use super::{BASE, Case, PASSED, REFUSED, Step};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "fields on every answer",
        policy: "headers: [draft-11, x-ratelimit-delta]\nlimits: [{name: api, rate: 2/366d, algorithm: gcra}]",
        steps: &[
            Step {
                answered: &[
                    ("ratelimit-policy", Some(r#""api";q=2;w=31622400"#)),
                    ("x-ratelimit-limit", Some("2")),
                    ("x-ratelimit-remaining", Some("1")),
                    ("x-ratelimit-policy", Some("2;w=31622400")),
                    ("retry-after", None),
                    ("x-tollgate-source", None),
                ],
                ..PASSED
            },
            Step { answered: &[("x-ratelimit-remaining", Some("0"))], ..PASSED },
            Step {
                answered: &[
                    ("x-ratelimit-remaining", Some("0")),
                    ("content-type", Some("application/problem+json")),
                    ("cache-control", Some("no-store")),
                ],
                body: Some(
                    r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["api"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after RETRY_AFTER seconds.","retry_after":RETRY_AFTER,"limit":2,"window":31622400}"#,
                ),
                ..REFUSED
            },
        ],
        ..BASE
    },
    Case {
        name: "a refusal that no wait can help, as JSON",
        policy: "headers: none\nlimits: [{name: api, rate: 0/min}]",
        steps: &[Step {
            fields: &[("accept", "application/json")],
            answered: &[("retry-after", None), ("content-type", Some("application/json"))],
            body: Some(
                r#"{"error":"rate_limit_exceeded","message":"Too many requests.","retry_after":null}"#,
            ),
            ..REFUSED
        }],
        ..BASE
    },
    Case {
        name: "words of one's own",
        policy: "headers: none\nrefusal: {body: 'no: {limits}', content_type: text/x-own}\nlimits: [{name: api, rate: 0/min}]",
        steps: &[Step {
            answered: &[("content-type", Some("text/x-own"))],
            body: Some("no: api"),
            ..REFUSED
        }],
        ..BASE
    },
    Case {
        name: "a list gets our items after its own",
        policy: "headers: [draft-11]\nlimits: [{name: a, rate: 5/366d, algorithm: fixed-window, disclose: true}, {name: h, rate: 9/366d, disclose: false}]",
        steps: &[Step {
            upstream: (200, &[("ratelimit-policy", r#""theirs";q=10"#)], "hello"),
            answered: &[("ratelimit-policy", Some(r#""theirs";q=10, "a";q=5;w=31622400"#))],
            ..PASSED
        }],
        ..BASE
    },
    Case {
        name: "one limit is shown: the tighter",
        policy: "headers: [x-ratelimit-delta]\nlimits: [{name: a, rate: 5/366d, algorithm: gcra}]",
        steps: &[
            Step {
                upstream: (
                    200,
                    &[
                        ("x-ratelimit-limit", "9"),
                        ("x-ratelimit-remaining", "3"),
                        ("x-ratelimit-reset", "7"),
                    ],
                    "hello",
                ),
                answered: &[
                    ("x-ratelimit-limit", Some("9")),
                    ("x-ratelimit-remaining", Some("3")),
                    ("x-ratelimit-policy", None),
                ],
                ..PASSED
            },
            Step {
                upstream: (
                    200,
                    &[
                        ("x-ratelimit-limit", "9"),
                        ("x-ratelimit-remaining", "4"),
                        ("x-ratelimit-reset", "7"),
                    ],
                    "hello",
                ),
                answered: &[
                    ("x-ratelimit-limit", Some("5")),
                    ("x-ratelimit-remaining", Some("3")),
                    ("x-ratelimit-policy", Some("5;w=31622400")),
                ],
                ..PASSED
            },
        ],
        ..BASE
    },
    Case {
        name: "an undisclosed limit sends no headers",
        policy: "headers: [draft-11]\nlimits: [{name: secret, rate: 1/366d, disclose: false}]",
        steps: &[
            Step { answered: &[("ratelimit", None), ("ratelimit-policy", None)], ..PASSED },
            Step {
                answered: &[("ratelimit", None)],
                body: Some(
                    r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429}"#,
                ),
                ..REFUSED
            },
        ],
        ..BASE
    },
    Case {
        name: "shadow limits refuse no request",
        policy: "limits: [{name: a, rate: 0/min, mode: shadow}]",
        steps: &[Step { answered: &[("x-tollgate-source", Some("shadow"))], ..PASSED }],
        ..BASE
    },
    Case {
        name: "a refusal that gRPC understands",
        policy: "headers: none\nlimits: [{name: api, rate: 0/min}]",
        steps: &[Step {
            request: "POST /a.B/C",
            fields: &[("content-type", "application/grpc"), ("te", "trailers")],
            status: 200,
            answered: &[
                ("grpc-status", Some("8")),
                ("grpc-message", Some("rate limit exceeded")),
                ("content-type", Some("application/grpc")),
            ],
            body: Some(""),
            ..REFUSED
        }],
        ..BASE
    },
    Case {
        name: "what the service itself refuses stays as it says",
        policy: "headers: [draft-11]\nlimits: [{name: a, rate: 5/366d, algorithm: fixed-window}]",
        steps: &[Step {
            upstream: (
                429,
                &[("retry-after", "7"), ("ratelimit", r#""theirs";r=0;t=7"#)],
                "theirs",
            ),
            status: 429,
            answered: &[
                ("retry-after", Some("7")),
                ("ratelimit-policy", Some(r#""a";q=5;w=31622400"#)),
            ],
            body: Some("theirs"),
            ..PASSED
        }],
        ..BASE
    },
    Case {
        name: "several limits, all or nothing",
        policy: "headers: [x-ratelimit-delta]\nlimits: [{name: a, rate: 9/366d, algorithm: gcra}, {name: b, rate: 1/366d, algorithm: gcra, match: {path: /b}}]",
        steps: &[
            Step { request: "GET /b", answered: &[("x-ratelimit-limit", Some("1"))], ..PASSED },
            Step { request: "GET /b", answered: &[("x-ratelimit-limit", Some("1"))], ..REFUSED },
            Step { answered: &[("x-ratelimit-remaining", Some("7"))], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "excluded requests are not counted and get no headers",
        policy: "limits: [{name: a, rate: 0/min, match: {not: {path: /healthz}}}]",
        steps: &[
            Step {
                request: "GET /healthz",
                answered: &[("x-tollgate-source", None), ("ratelimit", None)],
                ..PASSED
            },
            REFUSED,
        ],
        ..BASE
    },
    Case {
        name: "a request that comes too early waits, and passes",
        policy: "limits: [{name: pace, rate: 50/s, algorithm: leaky-bucket, queue: 9}]",
        steps: &[PASSED, PASSED, PASSED],
        ..BASE
    },
];
