//! Valid tokens, invalid tokens, and requests without a token.

use super::{BASE, Case, Fields, PASSED, REFUSED, Step};

const ONE: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMifQ.r2fp4pOzbH48ZhNTZBz259IyvcPpqfifPJnft6Jxn9s",
)];
const ONE_PADDED: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMifQ.r2fp4pOzbH48ZhNTZBz259IyvcPpqfifPJnft6Jxn9s=",
)];
const ONE_PAD_BITS: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMifQ.r2fp4pOzbH48ZhNTZBz259IyvcPpqfifPJnft6Jxn9t",
)];
const TWO: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIyIiwiYXVkIjoidXMifQ.u7rZXoLDImlkJtgneNbKBZmkudtJprlirKd9gw2w6cY",
)];
const OTHER_SECRET: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIzIiwiYXVkIjoidXMifQ.8dpC7_FLberUWlnWQMI9wKJEbFlm_jCBTde9CfpJGN8",
)];
const OTHER_AUDIENCE: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidGhlbSJ9._FHzmqUVIF7_1IZsJ6I_NKDFNxMjceLhq72_DN3HNqs",
)];
const EXPIRED: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMiLCJleHAiOjF9.FXZKJBOF9gVjcZVmrlSRkrRU-CwSakBIU4K9M20-M8Q",
)];
const FUTURE: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMiLCJuYmYiOjk5OTk5OTk5OTk5fQ.09tpZJt2aY51gdHXPu_ESLIeV-WrcyBNU5FXLzu2rR8",
)];
const LIST: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOlsiMSJdLCJhdWQiOiJ1cyJ9.j8ZmigVw32ppqN2DY-kZKeZq9fGOg-yue-3jrap9pag",
)];
const NO_SUB: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJhdWQiOiJ1cyJ9.6C97jcyi7juHoEwoAvfzNJci8bTQHTX72nojuFUey6M",
)];
const FREE: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMiLCJwbGFuIjoiZnJlZSJ9.h7_4eD765Qh9cn1GiX1WpdFJdq9xOCm8OQ_C_jAkQmM",
)];
const PRO: Fields = &[(
    "authorization",
    "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMiLCJwbGFuIjoicHJvIn0.Uwhcg84h8nnQp2Bb-Y2jOzMD4OfYBlDuJu5fDDfUt0A",
)];
// Spellings of the header that services read as the same token.
const ONE_TAB: Fields = &[(
    "authorization",
    "Bearer\teyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMifQ.r2fp4pOzbH48ZhNTZBz259IyvcPpqfifPJnft6Jxn9s",
)];
const ONE_SPACES: Fields = &[(
    "authorization",
    "bEARER   eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMifQ.r2fp4pOzbH48ZhNTZBz259IyvcPpqfifPJnft6Jxn9s",
)];
const EMPTY: Fields = &[("authorization", "Bearer")];
const GARBAGE: Fields = &[("authorization", "Bearer abc")];
const GLUED: Fields = &[(
    "authorization",
    "Bearer:eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiYXVkIjoidXMifQ.r2fp4pOzbH48ZhNTZBz259IyvcPpqfifPJnft6Jxn9s",
)];
const BASIC: Fields = &[("authorization", "Basic dTpw")];

const KEYS: Option<(&str, &str)> = Some(("secret", "a secret that nobody but this table knows"));

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a token that differs in its encoding only is the same token",
        policy: "headers: none\njwt: {keys: secret, algorithms: [HS256], audience: us}\nlimits: [{name: a, rate: 1/366d, key: [jwt.sub]}]",
        keys: KEYS,
        steps: &[
            Step { fields: ONE, ..PASSED },
            Step { fields: ONE_PADDED, answered: &[("x-tollgate-reason", None)], ..REFUSED },
            Step { fields: ONE_PAD_BITS, answered: &[("x-tollgate-reason", None)], ..REFUSED },
            Step { fields: ONE_TAB, answered: &[("x-tollgate-reason", None)], ..REFUSED },
            Step { fields: ONE_SPACES, answered: &[("x-tollgate-reason", None)], ..REFUSED },
            Step { fields: TWO, ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "a token that does not verify is refused, and the answer says why",
        policy: "headers: none\nidentity: {user: jwt.sub}\njwt: {keys: secret, algorithms: [HS256], audience: us}\nlimits: [{name: a, rate: 9/366d, key: [user]}]",
        keys: KEYS,
        steps: &[
            Step {
                fields: OTHER_SECRET,
                answered: &[
                    ("x-tollgate-reason", Some("token-signature")),
                    ("retry-after", None),
                    ("content-type", Some("application/problem+json")),
                ],
                body: Some(
                    r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"violated-policies":["a"],"detail":"The signature of the bearer token is wrong. Get a new one.","error":"rate_limit_exceeded","message":"The signature of the bearer token is wrong. Get a new one.","retry_after":null}"#,
                ),
                ..REFUSED
            },
            Step {
                fields: OTHER_AUDIENCE,
                answered: &[("x-tollgate-reason", Some("token-audience"))],
                ..REFUSED
            },
            Step {
                fields: EXPIRED,
                answered: &[("x-tollgate-reason", Some("token-expired"))],
                ..REFUSED
            },
            Step {
                fields: FUTURE,
                answered: &[("x-tollgate-reason", Some("token-not-yet-valid"))],
                ..REFUSED
            },
            Step {
                fields: LIST,
                answered: &[("x-tollgate-reason", Some("token-claim"))],
                ..REFUSED
            },
            Step {
                fields: EMPTY,
                answered: &[("x-tollgate-reason", Some("token-malformed"))],
                ..REFUSED
            },
            Step {
                fields: GARBAGE,
                answered: &[("x-tollgate-reason", Some("token-malformed"))],
                ..REFUSED
            },
            Step {
                fields: GLUED,
                answered: &[("x-tollgate-reason", Some("token-malformed"))],
                ..REFUSED
            },
            // No token: the claim is missing, and the limit does not apply.
            Step { fields: BASIC, answered: &[("ratelimit", None)], ..PASSED },
            Step { fields: NO_SUB, answered: &[("ratelimit", None)], ..PASSED },
            Step { answered: &[("ratelimit", None)], ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "the reason as JSON, and as gRPC",
        policy: "headers: none\njwt: {keys: secret, algorithms: [HS256]}\nlimits: [{name: a, rate: 9/366d, key: [jwt.sub]}]",
        keys: KEYS,
        steps: &[
            Step {
                fields: &[("authorization", "Bearer x"), ("accept", "application/json")],
                body: Some(
                    r#"{"error":"rate_limit_exceeded","message":"The bearer token is malformed. Send one signed token as Authorization: Bearer TOKEN.","retry_after":null}"#,
                ),
                ..REFUSED
            },
            Step {
                request: "POST /a.B/C",
                fields: &[("authorization", "Bearer x"), ("content-type", "application/grpc")],
                status: 200,
                answered: &[
                    ("grpc-status", Some("8")),
                    ("grpc-message", Some("the bearer token did not verify")),
                    ("x-tollgate-reason", Some("token-malformed")),
                ],
                body: Some(""),
                ..REFUSED
            },
        ],
        ..BASE
    },
    Case {
        name: "a limit may take a token that does not verify for a missing one",
        policy: "headers: none\njwt: {keys: secret, algorithms: [HS256], audience: us}\nlimits: [{name: a, rate: 1/366d, key: [jwt.sub], on_invalid: as_missing, on_missing: share}]",
        keys: KEYS,
        steps: &[
            Step { fields: EXPIRED, ..PASSED },
            Step { fields: OTHER_SECRET, answered: &[("x-tollgate-reason", None)], ..REFUSED },
            Step { answered: &[("x-tollgate-reason", None)], ..REFUSED },
            Step { fields: ONE, ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "tiers that follow from a claim need a token that verifies",
        policy: "headers: none\njwt: {keys: secret, algorithms: [HS256], audience: us}\ntiers: {from: jwt.plan}\nlimits: [{name: a, rate: unlimited, tiers: {free: 1/366d}}]",
        keys: KEYS,
        steps: &[
            Step { fields: FREE, ..PASSED },
            Step { fields: FREE, answered: &[("x-tollgate-reason", None)], ..REFUSED },
            Step { fields: PRO, ..PASSED },
            Step {
                fields: EXPIRED,
                answered: &[("x-tollgate-reason", Some("token-expired"))],
                ..REFUSED
            },
            PASSED,
        ],
        ..BASE
    },
    Case {
        name: "conditions on a claim may hold for a token that does not verify",
        policy: "headers: none\njwt: {keys: secret, algorithms: [HS256], audience: us}\nlimits: [{name: a, rate: 1/366d, match: {path: /free, jwt.plan: free}}, {name: b, rate: 2/366d, match: {path: /all, not: {jwt.plan: pro}}}]",
        keys: KEYS,
        steps: &[
            Step {
                request: "GET /free",
                fields: EXPIRED,
                answered: &[("x-tollgate-reason", Some("token-expired"))],
                ..REFUSED
            },
            Step { request: "GET /other", fields: EXPIRED, ..PASSED },
            Step { request: "GET /free", fields: PRO, ..PASSED },
            // An exclusion needs a verified value, so the limit applies.
            Step { request: "GET /all", fields: EXPIRED, ..PASSED },
            Step { request: "GET /all", fields: EXPIRED, ..PASSED },
            Step {
                request: "GET /all",
                fields: EXPIRED,
                answered: &[("x-tollgate-reason", None)],
                ..REFUSED
            },
            Step { request: "GET /all", fields: PRO, ..PASSED },
        ],
        ..BASE
    },
    Case {
        name: "limits that read no claim do not mind the token",
        policy: "headers: none\njwt: {keys: secret, algorithms: [HS256], audience: us}\nlimits: [{name: a, rate: 2/366d, match: {path: /a}}, {name: b, rate: 9/366d, key: [jwt.sub], match: {path: /b}}, {name: c, rate: 9/366d, key: [jwt.sub], match: {path: /b}, mode: shadow}]",
        keys: KEYS,
        steps: &[
            Step { request: "GET /a", fields: EXPIRED, ..PASSED },
            Step { request: "GET /b", fields: EXPIRED, ..REFUSED },
            Step { request: "GET /b", fields: ONE, ..PASSED },
            Step { request: "GET /a", fields: GARBAGE, ..PASSED },
            Step {
                request: "GET /a",
                fields: GARBAGE,
                answered: &[("x-tollgate-reason", None)],
                ..REFUSED
            },
        ],
        ..BASE
    },
];
