//! Requests, answers of a service behind, and what clients get: one table for the layer and for the gateway.
//!
//! Nothing in it depends on the time of day: the limits refill in a year.

/// A policy, and what happens under it, in order.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The file, without listeners and upstream.
    pub(crate) policy: &'static str,
    pub(crate) steps: &'static [Step],
}

/// One request from 127.0.0.1, and its answer.
pub(crate) struct Step {
    /// Method and target.
    pub(crate) request: &'static str,
    pub(crate) fields: Fields,
    /// What the service behind answers, should it be asked: status, fields, body.
    pub(crate) upstream: (u16, Fields, &'static str),
    /// What the client gets.
    pub(crate) status: u16,
    /// Fields of the answer: the whole value, or that there is none.
    pub(crate) answered: &'static [(&'static str, Option<&'static str>)],
    /// Fields of the request as the service behind sees them.
    pub(crate) seen: &'static [(&'static str, Option<&'static str>)],
    pub(crate) body: Option<&'static str>,
}

pub(crate) type Fields = &'static [(&'static str, &'static str)];

const OK: (u16, Fields, &str) = (200, &[], "hello");

/// Admitted, with nothing special about it.
const PASSED: Step = Step {
    request: "GET /",
    fields: &[],
    upstream: OK,
    status: 200,
    answered: &[],
    seen: &[],
    body: Some("hello"),
};

/// Refused, with nothing special about it.
const REFUSED: Step = Step { status: 429, body: None, ..PASSED };

const JSON: Fields = &[("content-type", "application/json")];
const EVENTS: Fields = &[("content-type", "text/event-stream")];

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
                    r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["api"]}"#,
                ),
                ..REFUSED
            },
        ],
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
    },
    Case {
        name: "words of one's own",
        policy: "headers: none\nrefusal: {body: 'no: {limits}', content_type: text/x-own}\nlimits: [{name: api, rate: 0/min}]",
        steps: &[Step {
            answered: &[("content-type", Some("text/x-own"))],
            body: Some("no: api"),
            ..REFUSED
        }],
    },
    Case {
        name: "one bucket for each key",
        policy: "identity: {user: header.x-user}\nlimits: [{name: a, rate: 1/366d, key: [user]}]",
        steps: &[
            Step { fields: &[("x-user", "1")], ..PASSED },
            Step { fields: &[("x-user", "2")], ..PASSED },
            Step { fields: &[("x-user", "1")], ..REFUSED },
            Step { fields: &[("X-User", "1"), ("x-user", "2")], ..PASSED },
            Step { fields: &[], answered: &[("x-tollgate-source", Some("none"))], ..PASSED },
        ],
    },
    Case {
        name: "a missing attribute refuses where it should",
        policy: "identity: {user: header.x-user}\nlimits: [{name: a, rate: 1/366d, key: [user], on_missing: refuse}]",
        steps: &[
            Step { answered: &[("retry-after", None)], ..REFUSED },
            Step { fields: &[("x-user", "1")], ..PASSED },
        ],
    },
    Case {
        name: "spellings of a path share a limit, and arrive as they were sent",
        policy: "limits: [{name: login, match: {path: /login, method: GET}, rate: 2/366d}]",
        steps: &[
            Step {
                request: "GET /%6Cogin?a=1",
                seen: &[(":path", Some("/%6Cogin?a=1"))],
                ..PASSED
            },
            Step { request: "GET /x/../login", seen: &[(":path", Some("/x/../login"))], ..PASSED },
            Step { request: "GET //login", ..REFUSED },
            Step { request: "POST /login", ..PASSED },
            Step { request: "GET /login/", ..PASSED },
        ],
    },
    Case {
        name: "cookies and queries are read as a service would",
        policy: "limits: [{name: a, rate: 1/366d, key: [cookie.sid, query.q]}]",
        steps: &[
            Step { request: "GET /?q=a%20b", fields: &[("cookie", "x=1; sid=s")], ..PASSED },
            Step {
                request: "GET /?q=a+b&q=c",
                fields: &[("cookie", "sid=\"s\"; sid=t")],
                ..REFUSED
            },
            Step { request: "GET /?q=c", fields: &[("cookie", "sid=s")], ..PASSED },
        ],
    },
    Case {
        name: "trusted proxies name the client",
        policy: "trusted_proxies: [127.0.0.0/8]\nlimits: [{name: a, rate: 1/366d, key: [ip]}]",
        steps: &[
            Step { fields: &[("x-forwarded-for", "203.0.113.7")], ..PASSED },
            Step { fields: &[("x-forwarded-for", "198.51.100.1, 203.0.113.7")], ..REFUSED },
            Step { fields: &[("x-forwarded-for", "203.0.113.8")], ..PASSED },
        ],
    },
    Case {
        name: "nobody else does",
        policy: "limits: [{name: a, rate: 1/366d, key: [ip]}]",
        steps: &[
            Step { fields: &[("x-forwarded-for", "203.0.113.7")], ..PASSED },
            Step { fields: &[("x-forwarded-for", "203.0.113.8")], ..REFUSED },
        ],
    },
    Case {
        name: "aliases and Connection neither forge nor strip",
        policy: "identity: {user: header.x-user}\nlimits: [{name: a, rate: 1/366d, key: [user], on_missing: refuse}]",
        steps: &[
            Step { fields: &[("x_user", "1"), ("x.user", "2")], ..REFUSED },
            Step {
                fields: &[("x-user", "1"), ("x_user", "2"), ("connection", "x-user")],
                seen: &[("x-user", Some("1")), ("x_user", None)],
                ..PASSED
            },
            Step { fields: &[("x-user", "1"), ("connection", "X-User")], ..REFUSED },
        ],
    },
    Case {
        name: "a list gets our items after its own",
        policy: "headers: [draft-11]\nlimits: [{name: a, rate: 5/366d, algorithm: fixed-window, disclose: true}, {name: h, rate: 9/366d, disclose: false}]",
        steps: &[Step {
            upstream: (200, &[("ratelimit-policy", r#""theirs";q=10"#)], "hello"),
            answered: &[("ratelimit-policy", Some(r#""theirs";q=10, "a";q=5;w=31622400"#))],
            ..PASSED
        }],
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
    },
    Case {
        name: "what is not disclosed is not told",
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
    },
    Case {
        name: "shadow limits refuse nobody",
        policy: "limits: [{name: a, rate: 0/min, mode: shadow}]",
        steps: &[Step { answered: &[("x-tollgate-source", Some("shadow"))], ..PASSED }],
    },
    Case {
        name: "logins that succeed do not count",
        policy: "limits: [{name: login, rate: 2/366d, on_response: {refund: [2xx], penalty: [401]}}]",
        steps: &[
            PASSED,
            PASSED,
            PASSED,
            Step { upstream: (401, &[], "no"), status: 401, body: Some("no"), ..PASSED },
            PASSED,
            Step { upstream: (500, &[], "oh"), status: 500, body: Some("oh"), ..PASSED },
            REFUSED,
        ],
    },
    Case {
        name: "logins that fail lead to a block",
        policy: "limits: [{name: login, rate: 100/366d, on_response: {penalty: [401]}, penalty: {after: 2, block: 1h}}]",
        steps: &[
            Step { upstream: (401, &[], "no"), status: 401, body: Some("no"), ..PASSED },
            PASSED,
            Step { upstream: (401, &[], "no"), status: 401, body: Some("no"), ..PASSED },
            Step {
                answered: &[("x-tollgate-source", Some("blocked"))],
                body: Some(
                    r#"{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":429,"violated-policies":["login"]}"#,
                ),
                ..REFUSED
            },
        ],
    },
    Case {
        name: "the answer's header says what it cost",
        policy: "headers: [x-ratelimit-delta]\nlimits: [{name: a, rate: 100/366d, algorithm: gcra, cost: {estimate: 10, response: {header: x-cost}}}]",
        steps: &[
            Step {
                upstream: (200, &[("x-cost", "3")], "hello"),
                answered: &[("x-ratelimit-remaining", Some("90"))],
                ..PASSED
            },
            Step {
                upstream: (200, &[("x-cost", "many")], "hello"),
                answered: &[("x-ratelimit-remaining", Some("87"))],
                ..PASSED
            },
            Step {
                upstream: (200, &[("x-cost", "60")], "hello"),
                answered: &[("x-ratelimit-remaining", Some("77"))],
                ..PASSED
            },
            Step {
                upstream: (200, &[("x-cost", "0")], "hello"),
                answered: &[("x-ratelimit-remaining", Some("17"))],
                ..PASSED
            },
            Step {
                upstream: (200, &[("x-cost", "1000")], "hello"),
                answered: &[("x-ratelimit-remaining", Some("17"))],
                ..PASSED
            },
            REFUSED,
        ],
    },
    Case {
        name: "the answer's JSON says what it cost",
        policy: "headers: [x-ratelimit-delta]\nlimits: [{name: a, rate: 100/366d, algorithm: gcra, cost: {estimate: 10, response: {json: usage.total_tokens}}}, {name: b, rate: 1000/366d}]",
        steps: &[
            Step {
                upstream: (200, JSON, r#"{"text":"hi","usage":{"total_tokens":30}}"#),
                answered: &[("x-ratelimit-remaining", Some("90"))],
                body: Some(r#"{"text":"hi","usage":{"total_tokens":30}}"#),
                ..PASSED
            },
            Step {
                upstream: (
                    200,
                    EVENTS,
                    "data: {\"usage\":null}\n\ndata: {\"usage\":{\"total_tokens\":5}}\n\ndata: [DONE]\n\n",
                ),
                answered: &[("x-ratelimit-remaining", Some("60"))],
                body: None,
                ..PASSED
            },
            Step {
                upstream: (200, JSON, "{}"),
                answered: &[("x-ratelimit-remaining", Some("55"))],
                body: Some("{}"),
                ..PASSED
            },
            Step { answered: &[("x-ratelimit-remaining", Some("45"))], ..PASSED },
        ],
    },
    Case {
        name: "a slot is free when the answer has been sent",
        policy: "headers: [x-ratelimit-delta]\nlimits: [{name: slots, algorithm: concurrency, rate: 1, ttl: 1h}]",
        steps: &[
            Step { answered: &[("x-ratelimit-remaining", Some("0"))], ..PASSED },
            PASSED,
            Step { upstream: (204, &[], ""), status: 204, body: Some(""), ..PASSED },
            Step { upstream: (500, &[], "oh"), status: 500, body: Some("oh"), ..PASSED },
            PASSED,
        ],
    },
];
