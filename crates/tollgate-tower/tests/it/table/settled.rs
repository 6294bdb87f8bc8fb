//! Responses that change the charges of their requests.

use super::{BASE, Case, Fields, PASSED, REFUSED, Step};

const JSON: Fields = &[("content-type", "application/json")];
const EVENTS: Fields = &[("content-type", "text/event-stream")];

pub(crate) const CASES: &[Case] = &[
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
        ..BASE
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
                    r#"{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected","title":"Abnormal Usage Detected","status":429,"violated-policies":["login"],"error":"rate_limit_exceeded","message":"Too many requests. Retry after RETRY_AFTER seconds.","retry_after":RETRY_AFTER,"limit":100,"window":31622400}"#,
                ),
                ..REFUSED
            },
        ],
        ..BASE
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
        ..BASE
    },
    Case {
        name: "a cost that is too large to be counted is no small one",
        policy: "limits: [{name: a, rate: 100/366d, algorithm: gcra, cost: {estimate: 10, response: {header: x-cost}}}]",
        steps: &[
            Step { upstream: (200, &[("x-cost", "99999999999999999999")], "hello"), ..PASSED },
            REFUSED,
        ],
        ..BASE
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
        ..BASE
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
        ..BASE
    },
    Case {
        name: "a refund gives back the units of the endpoint",
        policy: "headers: [x-ratelimit-delta]\nlimits: [{name: a, rate: 100/366d, algorithm: fixed-window, on_response: {refund: [5xx]}, \
                 cost: [{match: {path: /embed}, units: 60}]}]",
        steps: &[
            Step {
                request: "GET /embed",
                upstream: (500, &[], "oh"),
                status: 500,
                body: Some("oh"),
                answered: &[("x-ratelimit-remaining", Some("40"))],
                ..PASSED
            },
            Step {
                request: "GET /embed",
                answered: &[("x-ratelimit-remaining", Some("40"))],
                ..PASSED
            },
            Step { request: "GET /embed", ..REFUSED },
            Step {
                request: "GET /read",
                answered: &[("x-ratelimit-remaining", Some("39"))],
                ..PASSED
            },
        ],
        ..BASE
    },
];
