//! The identity of a client: keys, tiers and addresses.

use super::{AMBIGUOUS, BASE, Case, Fields, PASSED, REFUSED, Step};

// Tokens signed with HS256, except for one with `alg` `none`.
const SUB_1: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMifQ.r2fp4pOzbH48ZhNTZBz259IyvcPpqfifPJnft6Jxn9s",
)];
const SUB_2: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIyIiwiYXVkIjoidXMifQ.u7rZXoLDImlkJtgneNbKBZmkudtJprlirKd9gw2w6cY",
)];
const OTHER_SECRET: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIzIiwiYXVkIjoidXMifQ.67KzF8YrBzOga7vC_1M-6KlGOZusu0w4dyjWMz_NwNM",
)];
const ALG_NONE: Fields =
    &[("authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiI0IiwiYXVkIjoidXMifQ.")];
const OTHER_AUDIENCE: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI1IiwiYXVkIjoidGhlbSJ9.1Olx0X7mpX8hemN9ZV_dQOVThe9bIHEGUsG4mOCfDec",
)];
const EXPIRED: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI2IiwiYXVkIjoidXMiLCJleHAiOjF9.jPtfcALP-fh2gM2utCl8c7ySSkoka1jiNUfoBF5HCgc",
)];

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "one bucket for each key",
        policy: "identity: {user: header.x-user}\nlimits: [{name: a, rate: 1/366d, key: [user]}]",
        steps: &[
            Step { fields: &[("x-user", "1")], ..PASSED },
            Step { fields: &[("x-user", "2")], ..PASSED },
            Step { fields: &[("x-user", "1")], ..REFUSED },
            Step { fields: &[("X-User", "1"), ("x-user", "2")], ..AMBIGUOUS },
            Step { fields: &[("X-User", "3"), ("x-user", "3")], ..PASSED },
            Step { fields: &[("x-user", "3")], ..REFUSED },
            Step { fields: &[], answered: &[("ratelimit", None)], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "a missing attribute refuses where it should",
        policy: "identity: {user: header.x-user}\nlimits: [{name: a, rate: 1/366d, key: [user], on_missing: refuse}]",
        steps: &[
            Step { answered: &[("retry-after", None)], ..REFUSED },
            Step { fields: &[("x-user", "1")], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "an API key has the tier that a map gives it, in clear or by its hash",
        policy: "identity: {api_key: header.x-api-key}\ntiers: {default: free, by: api_key, map: {key-1: pro, \
                 sha256:7c36b0a9dedde119c75165957c6c9c187e65df1ee5db87c4c58ad503ad88cbe3: pro}}\n\
                 limits: [{name: a, rate: 1/366d, key: [api_key], tiers: {pro: 2/366d}}]",
        steps: &[
            Step { fields: &[("x-api-key", "key-1")], ..PASSED },
            Step { fields: &[("x-api-key", "key-1")], ..PASSED },
            Step { fields: &[("x-api-key", "key-1")], ..REFUSED },
            Step { fields: &[("x-api-key", "key-2")], ..PASSED },
            Step { fields: &[("x-api-key", "key-2")], ..PASSED },
            Step { fields: &[("x-api-key", "key-2")], ..REFUSED },
            Step { fields: &[("x-api-key", "key-3")], ..PASSED },
            Step { fields: &[("x-api-key", "key-3")], ..REFUSED },
            // A client that knows the hash does not know the key.
            Step {
                fields: &[(
                    "x-api-key",
                    "sha256:7c36b0a9dedde119c75165957c6c9c187e65df1ee5db87c4c58ad503ad88cbe3",
                )],
                ..PASSED
            },
            Step {
                fields: &[(
                    "x-api-key",
                    "sha256:7c36b0a9dedde119c75165957c6c9c187e65df1ee5db87c4c58ad503ad88cbe3",
                )],
                ..REFUSED
            },
        ],
        ..BASE
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
        ..BASE
    },
    Case {
        name: "cookies and queries are read as a service would",
        policy: "limits: [{name: a, rate: 1/366d, key: [cookie.sid, query.q]}]",
        steps: &[
            Step { request: "GET /?q=a%20b", fields: &[("cookie", "x=1; sid=s")], ..PASSED },
            Step { request: "GET /?q=a+b", fields: &[("cookie", "sid=\"s\"")], ..REFUSED },
            Step { request: "GET /?q=a+b", fields: &[("cookie", "sid=%73")], ..REFUSED },
            Step { request: "GET /?q=c", fields: &[("cookie", "sid=s")], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "identity in two values is refused, whatever carries it",
        policy: "limits: [{name: a, rate: 9/366d, key: [cookie.sid, query.q]}, {name: b, rate: 9/366d, cost: {header: x-cost, default: 1, max: 5}}]",
        steps: &[
            Step { request: "GET /?q=a&q=b", ..AMBIGUOUS },
            Step { request: "GET /?q=a&%71=b", ..AMBIGUOUS },
            Step { request: "GET /?q=a;q=b", ..AMBIGUOUS },
            Step { request: "GET /?x;q=a", ..AMBIGUOUS },
            Step { request: "GET /?q[]=a", ..AMBIGUOUS },
            Step { request: "GET /?Q=a", ..AMBIGUOUS },
            Step { request: "GET /?q=&q=a", ..AMBIGUOUS },
            Step { request: "GET /?q%00=a", ..AMBIGUOUS },
            Step { request: "GET /?%5bq%5d=a", ..AMBIGUOUS },
            Step { request: "GET /??q=a", ..AMBIGUOUS },
            Step { request: "GET /?q=a&q=%61", ..PASSED },
            Step { request: "GET /?q=a+&q=%0aa%00", ..PASSED },
            Step { request: "GET /?q=a%3Bq=b", ..PASSED },
            Step { request: "GET /?qq=a&r[q]=b", ..PASSED },
            Step { fields: &[("cookie", "sid=a; sid=b")], ..AMBIGUOUS },
            Step { fields: &[("cookie", "sid=a"), ("cookie", "sid=b")], ..AMBIGUOUS },
            Step { fields: &[("cookie", "sid=\"\\141\"")], ..AMBIGUOUS },
            Step { fields: &[("cookie", "sid=a; sid=\"a\"; SID=b")], ..PASSED },
            Step { fields: &[("cookie", "sid[]=a")], ..AMBIGUOUS },
            Step { fields: &[("cookie", "x=1 sid=a")], ..AMBIGUOUS },
            Step { fields: &[("cookie", "sid=a x=1")], ..AMBIGUOUS },
            Step { fields: &[("cookie", "sid=j:\"a\"")], ..AMBIGUOUS },
            Step { fields: &[("x-cost", "5"), ("x-cost", "0")], ..AMBIGUOUS },
            Step { fields: &[("x-cost", "1"), ("x-cost", " 1")], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "what only `match` names may come twice, and one value is enough",
        policy: "limits: [{name: a, match: {header.x-mode: test}, rate: 0/min}, {name: b, match: {query.mode: test}, rate: 0/min}, {name: c, match: {cookie.mode: test}, rate: 0/min}, {name: d, match: {path: /not, not: {header.x-free: \"1\"}}, rate: 0/min}, {name: e, match: {header.accept: \"a/a, b/b\"}, rate: 0/min}]",
        steps: &[
            Step { fields: &[("x-mode", "other")], ..PASSED },
            Step { fields: &[("x-mode", "other"), ("x-mode", "test")], ..REFUSED },
            Step { fields: &[("x-mode", "test"), ("x-mode", "other")], ..REFUSED },
            Step { request: "GET /?mode=other&mode=test", ..REFUSED },
            Step { request: "GET /?mode=other;mode=test", ..REFUSED },
            Step { request: "GET /?mode[]=test", ..REFUSED },
            Step { request: "GET /?mode=other&mode=more", ..PASSED },
            Step { fields: &[("cookie", "mode=other; mode=test")], ..REFUSED },
            Step { request: "GET /not", fields: &[("x-free", "1")], ..PASSED },
            Step { request: "GET /not", fields: &[("x-free", "1"), ("x-free", "0")], ..REFUSED },
            Step { fields: &[("accept", "a/a"), ("accept", "b/b")], ..REFUSED },
        ],
        ..BASE
    },
    Case {
        name: "a path with two readings is refused",
        policy: "limits: [{name: login, match: {path: [/login, \"/users:batch\"]}, rate: 0/min}]",
        steps: &[
            Step { request: "GET /x//../login", ..AMBIGUOUS },
            Step { request: "GET /x/%2e%2e/login", ..AMBIGUOUS },
            Step { request: "GET /%2flogin", ..AMBIGUOUS },
            Step { request: "GET /x/..%5clogin", ..AMBIGUOUS },
            Step { request: "GET /x/..;/login", ..AMBIGUOUS },
            Step { request: "GET /login%00", ..AMBIGUOUS },
            Step { request: "GET /login%zz", ..AMBIGUOUS },
            Step { request: "GET /login;x=1", ..REFUSED },
            Step { request: "GET /users%3Abatch", ..REFUSED },
            Step { request: "GET /login/.", ..REFUSED },
            Step { request: "GET /a%20b;c?d=%2f", ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "and so it is where no limit names a path",
        policy: "limits: [{name: a, rate: 9/min}]",
        steps: &[Step { request: "GET /x//../login", ..AMBIGUOUS }, PASSED],
        ..BASE
    },
    Case {
        name: "trusted proxies name the client",
        policy: "trusted_proxies: [127.0.0.0/8]\nlimits: [{name: a, rate: 1/366d, key: [ip]}]",
        steps: &[
            Step { fields: &[("x-forwarded-for", "203.0.113.7")], ..PASSED },
            Step { fields: &[("x-forwarded-for", "198.51.100.1, 203.0.113.7")], ..REFUSED },
            Step { fields: &[("x-forwarded-for", "203.0.113.8")], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "nobody else does",
        policy: "limits: [{name: a, rate: 1/366d, key: [ip]}]",
        steps: &[
            Step { fields: &[("x-forwarded-for", "203.0.113.7")], ..PASSED },
            Step { fields: &[("x-forwarded-for", "203.0.113.8")], ..REFUSED },
        ],
        ..BASE
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
        ..BASE
    },
    Case {
        name: "claims count when their signature does",
        policy: "headers: none\nidentity: {user: jwt.sub}\njwt: {keys: secret, algorithms: [HS256], audience: us}\nlimits: [{name: a, rate: 1/366d, key: [user], on_missing: refuse}]",
        keys: Some(("secret", "a secret that nobody but this table knows")),
        steps: &[
            Step { fields: SUB_1, ..PASSED },
            Step { fields: SUB_1, ..REFUSED },
            Step { fields: SUB_2, ..PASSED },
            Step { fields: OTHER_SECRET, ..REFUSED },
            Step { fields: ALG_NONE, ..REFUSED },
            Step { fields: OTHER_AUDIENCE, ..REFUSED },
            Step { fields: EXPIRED, ..REFUSED },
            REFUSED,
        ],
        ..BASE
    },
    Case {
        name: "a request says what it costs, up to what it may",
        policy: "headers: [x-ratelimit-delta]\nlimits: [{name: a, rate: 20/366d, algorithm: gcra, cost: {header: x-cost, default: 2, max: 5}}]",
        steps: &[
            Step { answered: &[("x-ratelimit-remaining", Some("18"))], ..PASSED },
            Step {
                fields: &[("x-cost", "3")],
                answered: &[("x-ratelimit-remaining", Some("15"))],
                ..PASSED
            },
            Step {
                fields: &[("x-cost", "999")],
                answered: &[("x-ratelimit-remaining", Some("10"))],
                ..PASSED
            },
        ],
        ..BASE
    },
    Case {
        name: "endpoints of different weight share one budget",
        policy: "headers: [x-ratelimit-delta]\nlimits: [{name: a, rate: 100/366d, algorithm: gcra, key: [ip], cost: [{match: {path: '/embed/**', not: {method: HEAD}}, units: 10}, \
                 {match: {path: /status}, units: 0}, {match: {header.x-model: 'large*'}, units: 50}]}]",
        steps: &[
            Step {
                request: "GET /read",
                answered: &[("x-ratelimit-remaining", Some("99"))],
                ..PASSED
            },
            Step {
                request: "POST /embed/x?a=b",
                answered: &[("x-ratelimit-remaining", Some("89"))],
                ..PASSED
            },
            Step {
                request: "GET /status",
                answered: &[("x-ratelimit-remaining", Some("89"))],
                ..PASSED
            },
            Step {
                request: "GET /read",
                fields: &[("x-model", "large-2")],
                answered: &[("x-ratelimit-remaining", Some("39"))],
                ..PASSED
            },
            Step {
                request: "GET /read",
                fields: &[("x-model", "large-2")],
                answered: &[("x-ratelimit-remaining", Some("39"))],
                ..REFUSED
            },
            Step {
                request: "GET /read",
                answered: &[("x-ratelimit-remaining", Some("38"))],
                ..PASSED
            },
        ],
        ..BASE
    },
    Case {
        name: "the first of several keys that a request has is used",
        policy: "headers: [x-ratelimit-delta]\nidentity: {user: header.x-user}\nlimits: [{name: a, rate: 2/366d, algorithm: fixed-window, \
                 key: {first_of: [user, [ip, header.user-agent], ip]}}]",
        steps: &[
            Step {
                fields: &[("x-user", "127.0.0.1"), ("user-agent", "curl")],
                answered: &[("x-ratelimit-remaining", Some("1"))],
                ..PASSED
            },
            Step {
                fields: &[("user-agent", "curl")],
                answered: &[("x-ratelimit-remaining", Some("1"))],
                ..PASSED
            },
            Step { answered: &[("x-ratelimit-remaining", Some("1"))], ..PASSED },
            Step { answered: &[("x-ratelimit-remaining", Some("0"))], ..PASSED },
            REFUSED,
            Step { fields: &[("x-user", "127.0.0.1")], ..PASSED },
            Step { fields: &[("x-user", "127.0.0.1"), ("user-agent", "curl")], ..REFUSED },
            Step { fields: &[("user-agent", "curl")], ..PASSED },
            Step { fields: &[("user-agent", "curl")], ..REFUSED },
            Step { fields: &[("user-agent", "wget")], ..PASSED },
        ],
        ..BASE
    },
];
