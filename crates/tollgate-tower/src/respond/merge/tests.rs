//! Rate limit headers merged with those of the upstream.

use super::super::tests::{ExpectedHeaders, ask, map, shown, toll};
use crate::HttpDecision;
use http::Response;

/// Profiles, the upstream's headers, and the headers that the client gets. The limit is 100 a
/// minute, at its first request.
const MERGES: &[(&str, ExpectedHeaders, ExpectedHeaders)] = &[
    (
        "draft-11",
        &[],
        &[("ratelimit", r#""api";r=99;t=42"#), ("ratelimit-policy", r#""api";q=100;w=60"#)],
    ),
    (
        "draft-11",
        &[("ratelimit", r#""theirs";r=5"#), ("ratelimit-policy", r#""theirs";q=10"#)],
        &[
            ("ratelimit", r#""theirs";r=5, "api";r=99;t=42"#),
            ("ratelimit-policy", r#""theirs";q=10, "api";q=100;w=60"#),
        ],
    ),
    // A list over several lines keeps its order.
    (
        "draft-11",
        &[("ratelimit", r#""a";r=5"#), ("ratelimit", r#""b";r=6"#)],
        &[
            ("ratelimit", r#""a";r=5, "b";r=6, "api";r=99;t=42"#),
            ("ratelimit-policy", r#""api";q=100;w=60"#),
        ],
    ),
    // An empty line adds no member.
    (
        "draft-11",
        &[("ratelimit", ""), ("ratelimit-policy", "")],
        &[("ratelimit", r#""api";r=99;t=42"#), ("ratelimit-policy", r#""api";q=100;w=60"#)],
    ),
    (
        "draft-11",
        &[("ratelimit", r#""a";r=5"#), ("ratelimit", "")],
        &[
            ("ratelimit", r#""a";r=5, "api";r=99;t=42"#),
            ("ratelimit-policy", r#""api";q=100;w=60"#),
        ],
    ),
    // The same names in another generation are not a list: the tighter set wins.
    (
        "draft-11",
        &[("ratelimit", "limit=10, remaining=5, reset=9")],
        &[("ratelimit", "limit=10, remaining=5, reset=9")],
    ),
    (
        "draft-11",
        &[("ratelimit", "limit=1000, remaining=500, reset=9")],
        &[("ratelimit", r#""api";r=99;t=42"#), ("ratelimit-policy", r#""api";q=100;w=60"#)],
    ),
    // Room for one limit: the upstream's set is tighter, and stays whole.
    (
        "x-ratelimit-delta",
        &[("x-ratelimit-limit", "10"), ("x-ratelimit-remaining", "5"), ("x-ratelimit-reset", "9")],
        &[("x-ratelimit-limit", "10"), ("x-ratelimit-remaining", "5"), ("x-ratelimit-reset", "9")],
    ),
    // Our set is tighter, and replaces the upstream's set.
    (
        "github",
        &[
            ("x-ratelimit-limit", "1000"),
            ("x-ratelimit-remaining", "500"),
            ("x-ratelimit-reset", "9"),
            ("x-ratelimit-resource", "core"),
        ],
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "1794744060"),
            ("x-ratelimit-resource", "api"),
            ("x-ratelimit-used", "1"),
        ],
    ),
    // Also replaces headers of the upstream that our profile does not have.
    (
        "x-ratelimit-delta",
        &[
            ("x-ratelimit-limit", "1000"),
            ("x-ratelimit-remaining", "500"),
            ("x-ratelimit-reset", "9"),
            ("x-ratelimit-used", "500"),
            ("x-ratelimit-resource", "core"),
            ("x-ratelimit-bucket", "b"),
            ("x-ratelimit-reset-after", "2.5"),
            ("x-ratelimit-scope", "user"),
            ("x-ratelimit-anything", "else"),
        ],
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-policy", "100;w=60"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "42"),
        ],
    ),
    (
        "github",
        &[
            ("x-ratelimit-remaining", "500"),
            ("x-ratelimit-policy", "1000;w=60"),
            ("x-ratelimit-scope", "user"),
            ("ratelimit-remaining", "700"),
        ],
        &[
            ("ratelimit-remaining", "700"),
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "1794744060"),
            ("x-ratelimit-resource", "api"),
            ("x-ratelimit-used", "1"),
        ],
    ),
    (
        "draft-6",
        &[
            ("ratelimit-remaining", "500"),
            ("ratelimit-used", "500"),
            ("ratelimit", r#""theirs";r=5"#),
            ("x-ratelimit-used", "500"),
        ],
        &[
            ("ratelimit", r#""theirs";r=5"#),
            ("ratelimit-limit", "100"),
            ("ratelimit-policy", "100;w=60"),
            ("ratelimit-remaining", "99"),
            ("ratelimit-reset", "42"),
            ("x-ratelimit-used", "500"),
        ],
    ),
    // Our set replaces no quotas of other kinds, except for headers that clients would read as
    // ours.
    (
        "x-ratelimit-delta",
        &[("x-ratelimit-remaining-tokens", "500"), ("x-ratelimit-used", "3")],
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-policy", "100;w=60"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-remaining-tokens", "500"),
            ("x-ratelimit-reset", "42"),
        ],
    ),
    // With equal remaining units, the upstream's set stays.
    (
        "draft-6",
        &[("ratelimit-limit", "100"), ("ratelimit-remaining", "99"), ("ratelimit-reset", "7")],
        &[("ratelimit-limit", "100"), ("ratelimit-remaining", "99"), ("ratelimit-reset", "7")],
    ),
    // Headers that cannot be parsed are replaced.
    (
        "draft-6",
        &[("ratelimit-remaining", "lots")],
        &[
            ("ratelimit-limit", "100"),
            ("ratelimit-policy", "100;w=60"),
            ("ratelimit-remaining", "99"),
            ("ratelimit-reset", "42"),
        ],
    ),
    // In the older drafts the policy header is a list, with either set of numbers.
    (
        "draft-6",
        &[
            ("ratelimit-policy", "1000;w=60, 9000;w=3600"),
            ("ratelimit-limit", "1000"),
            ("ratelimit-remaining", "500"),
            ("ratelimit-reset", "9"),
        ],
        &[
            ("ratelimit-limit", "100"),
            ("ratelimit-policy", "1000;w=60, 9000;w=3600, 100;w=60"),
            ("ratelimit-remaining", "99"),
            ("ratelimit-reset", "42"),
        ],
    ),
    (
        "draft-6",
        &[
            ("ratelimit-policy", "10;w=60"),
            ("ratelimit-limit", "10"),
            ("ratelimit-remaining", "5"),
            ("ratelimit-reset", "9"),
        ],
        &[
            ("ratelimit-limit", "10"),
            ("ratelimit-policy", "10;w=60, 100;w=60"),
            ("ratelimit-remaining", "5"),
            ("ratelimit-reset", "9"),
        ],
    ),
    (
        "draft-6",
        &[("ratelimit-policy", "10;w=60"), ("ratelimit-policy", "20;w=90;name=\"x\"")],
        &[
            ("ratelimit-limit", "100"),
            ("ratelimit-policy", "10;w=60, 20;w=90;name=\"x\", 100;w=60"),
            ("ratelimit-remaining", "99"),
            ("ratelimit-reset", "42"),
        ],
    ),
    (
        "draft-7",
        &[("ratelimit-policy", "10;w=60"), ("ratelimit", "limit=10, remaining=5, reset=9")],
        &[
            ("ratelimit", "limit=10, remaining=5, reset=9"),
            ("ratelimit-policy", "10;w=60, 100;w=60"),
        ],
    ),
    (
        "draft-7",
        &[("ratelimit-policy", "1000;w=60"), ("ratelimit", "limit=1000, remaining=500, reset=9")],
        &[
            ("ratelimit", "limit=100, remaining=99, reset=42"),
            ("ratelimit-policy", "1000;w=60, 100;w=60"),
        ],
    ),
    // In other profiles a policy belongs to the limit that is shown, unless the policy header is
    // alone.
    (
        "x-ratelimit-delta",
        &[("x-ratelimit-remaining", "500"), ("x-ratelimit-policy", "1000;w=60")],
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-policy", "100;w=60"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "42"),
        ],
    ),
    (
        "x-ratelimit-epoch",
        &[("x-ratelimit-policy", "1000;w=60")],
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-policy", "1000;w=60, 100;w=60"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "1794744060"),
        ],
    ),
    // Policies of another generation stay alone: no client could parse a list of both.
    (
        "draft-11",
        &[("ratelimit-policy", "10;w=60"), ("ratelimit-remaining", "5")],
        &[
            ("ratelimit", r#""api";r=99;t=42"#),
            ("ratelimit-policy", "10;w=60"),
            ("ratelimit-remaining", "5"),
        ],
    ),
    (
        "draft-11",
        &[("ratelimit-policy", "10;w=60;name=\"x\"")],
        &[("ratelimit", r#""api";r=99;t=42"#), ("ratelimit-policy", "10;w=60;name=\"x\"")],
    ),
    (
        "draft-6",
        &[("ratelimit-policy", r#""theirs";q=10"#), ("ratelimit", r#""theirs";r=5"#)],
        &[
            ("ratelimit", r#""theirs";r=5"#),
            ("ratelimit-limit", "100"),
            ("ratelimit-policy", r#""theirs";q=10"#),
            ("ratelimit-remaining", "99"),
            ("ratelimit-reset", "42"),
        ],
    ),
    (
        "discord",
        &[("x-ratelimit-limit", "10"), ("x-ratelimit-remaining", "5"), ("x-ratelimit-scope", "a")],
        &[("x-ratelimit-limit", "10"), ("x-ratelimit-remaining", "5"), ("x-ratelimit-scope", "a")],
    ),
    ("none", &[("ratelimit", r#""theirs";r=5"#)], &[("ratelimit", r#""theirs";r=5"#)]),
];

#[test]
fn fields_are_merged_with_those_of_the_service_behind() {
    for (profiles, theirs, expected) in MERGES {
        let file = format!(
            "headers: [{profiles}]\nlimits: [{{name: api, rate: 100/min, algorithm: fixed-window}}]"
        );
        let HttpDecision::Admitted(pass) = ask(&toll(&file), &[]) else {
            panic!("{profiles}: refused")
        };
        let mut response = Response::new(String::new());
        *response.headers_mut() = map(theirs);
        let response = pass.respond(response);
        assert_eq!(shown(response.headers()), *expected, "{profiles} over {theirs:?}");
    }
}
