//! Responses while the store cannot decide.

use super::{BASE, Case, PASSED, REFUSED, Step};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "an open limit lets all pass",
        policy: "limits: [{name: a, rate: 1/366d}]",
        storeless: true,
        steps: &[
            Step { answered: &[("x-tollgate-source", Some("fail-open"))], ..PASSED },
            Step { answered: &[("retry-after", None)], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "a closed limit refuses with 503",
        policy: "limits: [{name: a, rate: 9/366d, on_store_failure: closed}]",
        storeless: true,
        steps: &[
            Step {
                status: 503,
                answered: &[
                    ("retry-after", Some("1")),
                    ("x-tollgate-source", Some("fail-closed")),
                    ("content-type", Some("application/problem+json")),
                    ("cache-control", Some("no-store")),
                ],
                body: Some(
                    r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503,"violated-policies":["a"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after RETRY_AFTER seconds.","retry_after":RETRY_AFTER,"limit":9,"window":31622400}"#,
                ),
                ..REFUSED
            },
            Step {
                fields: &[("content-type", "application/grpc")],
                status: 200,
                answered: &[("grpc-status", Some("14")), ("retry-after", Some("1"))],
                body: Some(""),
                ..REFUSED
            },
        ],
        ..BASE
    },
    Case {
        name: "a template's words are those of a closed limit too",
        policy: "refusal: {body: '{status} {retry_after} {limits}', content_type: text/x-own}\nlimits: [{name: a, rate: 9/366d, on_store_failure: closed}]",
        storeless: true,
        steps: &[Step { status: 503, body: Some("503 1 a"), ..REFUSED }],
        ..BASE
    },
    Case {
        name: "a local limit grants a node's share",
        policy: "limits: [{name: a, rate: 3/366d, algorithm: fixed-window, on_store_failure: {local: {nodes: 2}}}]",
        storeless: true,
        steps: &[
            Step { answered: &[("x-tollgate-source", Some("local-fallback"))], ..PASSED },
            Step { answered: &[("x-tollgate-source", Some("local-fallback"))], ..REFUSED },
        ],
        ..BASE
    },
];
