//! Requests, upstream responses, and the responses that clients get. One table for the layer and
//! for the gateway, whose tests compile it too.
//!
//! No case depends on the time of day: the limits refill in a year.

pub(crate) mod answers;
pub(crate) mod failing;
pub(crate) mod identity;
pub(crate) mod lives;
pub(crate) mod settled;
pub(crate) mod shed;
pub(crate) mod tokens;

/// A policy, and steps under it, in order.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The policy, without listeners, upstream and store.
    pub(crate) policy: &'static str,
    /// The content of the file that `jwt.keys` names.
    pub(crate) keys: Option<(&'static str, &'static str)>,
    /// Whether the store is unreachable.
    pub(crate) storeless: bool,
    pub(crate) steps: &'static [Step],
}

/// One request from 127.0.0.1, and its response.
pub(crate) struct Step {
    /// Method and target.
    pub(crate) request: &'static str,
    pub(crate) fields: Fields,
    /// The response of the upstream, if it gets the request: status, headers, body.
    pub(crate) upstream: (u16, Fields, &'static str),
    /// Whether the upstream gets the request.
    pub(crate) passes: bool,
    /// The status that the client gets.
    pub(crate) status: u16,
    /// Headers of the response: the whole value, or `None` for an absent header.
    pub(crate) answered: &'static [(&'static str, Option<&'static str>)],
    /// Headers of the request that the upstream gets.
    pub(crate) seen: &'static [(&'static str, Option<&'static str>)],
    pub(crate) body: Option<&'static str>,
}

pub(crate) type Fields = &'static [(&'static str, &'static str)];

const OK: (u16, Fields, &str) = (200, &[], "hello");

/// A step with defaults.
const BASE: Case = Case { name: "", policy: "", keys: None, storeless: false, steps: &[] };

/// An admitted request with defaults.
const PASSED: Step = Step {
    request: "GET /",
    fields: &[],
    upstream: OK,
    passes: true,
    status: 200,
    answered: &[],
    seen: &[],
    body: Some("hello"),
};

/// A refused request with defaults.
const REFUSED: Step = Step { status: 429, passes: false, body: None, ..PASSED };

/// A request that is refused because a service could read it in another way than it is counted.
const AMBIGUOUS: Step = Step {
    status: 400,
    answered: &[("content-type", Some("application/problem+json"))],
    ..REFUSED
};

/// The outcome of a step. Names are in lower case.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) answered: Vec<(String, String)>,
    pub(crate) body: String,
    /// The request that the upstream got; `:path` is its target.
    pub(crate) seen: Option<Vec<(String, String)>>,
}

impl Step {
    /// Compares the result with the expectation.
    #[track_caller]
    pub(crate) fn check(&self, at: &str, got: &Got) {
        assert_eq!(got.status, self.status, "{at}: {got:?}");
        for (name, expected) in self.answered {
            assert_eq!(find(&got.answered, name), *expected, "{at}: {name} of the answer: {got:?}");
        }
        if let Some(body) = self.body {
            // The wait depends on the time of day; the header and the body agree on it.
            let wait = find(&got.answered, "retry-after").unwrap_or_default();
            assert_eq!(got.body, body.replace("RETRY_AFTER", wait), "{at}");
        }
        assert_eq!(got.seen.is_some(), self.passes, "{at}: whether it passed: {got:?}");
        for (name, expected) in self.seen {
            let seen = got.seen.as_deref().unwrap_or_default();
            assert_eq!(find(seen, name), *expected, "{at}: {name} of the request");
        }
    }
}

fn find<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|field| field.0 == name).map(|field| &*field.1)
}
