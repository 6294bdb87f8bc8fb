//! Responses when the upstream is overloaded, by class.

use super::{AMBIGUOUS, BASE, Case, PASSED, REFUSED, Step};

/// Less important requests find no room: every slot is reserved.
const SHED: Step = Step {
    status: 503,
    answered: &[
        ("x-tollgate-source", Some("shed")),
        ("content-type", Some("application/problem+json")),
        ("cache-control", Some("no-store")),
        ("ratelimit", Some("\"a\";r=3")),
    ],
    body: Some(
        r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503,"error":"overloaded","message":"The service is overloaded. Retry after RETRY_AFTER seconds.","retry_after":RETRY_AFTER}"#,
    ),
    ..REFUSED
};

const CHARGE: Step = Step { request: "POST /charge", ..PASSED };

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "important requests are served, and others are shed with a wait",
        policy: "classes: [{name: critical, match: {path: /charge}}, {name: normal, default: true}]
shed: {fleet: {capacity: 10, reserve: {critical: 100%}}, adaptive: {}}
headers: [draft-11]
limits: [{name: a, rate: 3, algorithm: concurrency}]",
        steps: &[
            Step { answered: &[("ratelimit", Some("\"a\";r=2"))], ..CHARGE },
            SHED,
            Step {
                fields: &[("accept", "application/json")],
                body: Some(
                    r#"{"error":"overloaded","message":"The service is overloaded. Retry after RETRY_AFTER seconds.","retry_after":RETRY_AFTER}"#,
                ),
                answered: &[("content-type", Some("application/json"))],
                ..SHED
            },
            Step {
                fields: &[("content-type", "application/grpc")],
                status: 200,
                answered: &[
                    ("grpc-status", Some("14")),
                    ("grpc-message", Some("the service is overloaded")),
                ],
                body: Some(""),
                ..SHED
            },
            // The limit was not charged.
            Step { answered: &[("ratelimit", Some("\"a\";r=2"))], ..CHARGE },
            // The 503 of an upstream is forwarded.
            Step {
                upstream: (503, &[], "busy"),
                status: 503,
                answered: &[("x-tollgate-source", None)],
                body: Some("busy"),
                ..CHARGE
            },
            CHARGE,
        ],
        ..BASE
    },
    Case {
        name: "a header lowers a class and never raises it",
        policy: "classes: [{name: critical, match: {path: /charge}}, {name: normal, default: true}]
shed: {fleet: {capacity: 10, reserve: {critical: 100%}}, lower_by: header.x-priority}
headers: [draft-11]
limits: [{name: a, rate: 3, algorithm: concurrency}]",
        steps: &[
            CHARGE,
            Step { fields: &[("x-priority", "normal")], request: "POST /charge", ..SHED },
            Step { fields: &[("x-priority", "critical")], ..SHED },
            Step { fields: &[("x-priority", "critical")], ..CHARGE },
            Step { fields: &[("x-priority", "other")], ..CHARGE },
            // Two values: an upstream could read the value that Tollgate does not.
            Step { fields: &[("x-priority", "normal"), ("x-priority", "critical")], ..AMBIGUOUS },
        ],
        ..BASE
    },
    Case {
        name: "a trusted proxy names any class",
        policy: "trusted_proxies: [127.0.0.0/8]
classes: [{name: critical, match: {path: /charge}}, {name: normal, default: true}]
shed: {fleet: {capacity: 10, reserve: {critical: 100%}}, lower_by: header.x-priority}
headers: [draft-11]
limits: [{name: a, rate: 3, algorithm: concurrency}]",
        steps: &[SHED, Step { fields: &[("x-priority", "critical")], ..PASSED }],
        ..BASE
    },
    Case {
        name: "an attribute of a class has one value",
        policy:
            "classes: [{name: test, match: {header.x-mode: test}}, {name: normal, default: true}]
shed: {adaptive: {}}
limits: []",
        steps: &[
            Step { fields: &[("x-mode", "test"), ("x-mode", "live")], ..AMBIGUOUS },
            Step { fields: &[("x-mode", "test"), ("x-mode", "test")], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "a shedder in shadow mode sheds nothing, and one that is off does nothing",
        policy: "classes: [{name: critical, match: {path: /charge}}, {name: normal, default: true}]
shed: {fleet: {capacity: 10, reserve: {critical: 100%}}, mode: shadow}
limits: []",
        steps: &[
            Step { answered: &[("x-tollgate-source", Some("shadow"))], ..PASSED },
            Step { answered: &[("x-tollgate-source", None)], ..CHARGE },
        ],
        ..BASE
    },
    Case {
        name: "a store that fails sheds nothing",
        policy: "shed: {fleet: {capacity: 1}}\nlimits: []",
        storeless: true,
        steps: &[Step { answered: &[("x-tollgate-source", Some("fail-open"))], ..PASSED }, PASSED],
        ..BASE
    },
];
