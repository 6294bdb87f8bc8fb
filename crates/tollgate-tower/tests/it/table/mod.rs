//! Requests, answers of a service behind, and what clients get: one table for the layer and for the
//! gateway, which compiles it into its own tests.
//!
//! Nothing in it depends on the time of day: the limits refill in a year.

pub(crate) mod answers;
pub(crate) mod failing;
pub(crate) mod identity;
pub(crate) mod lives;
pub(crate) mod settled;
pub(crate) mod shed;
pub(crate) mod tokens;

/// A policy, and what happens under it, in order.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The file, without listeners, upstream and store.
    pub(crate) policy: &'static str,
    /// What the file that `jwt.keys` names has in it.
    pub(crate) keys: Option<(&'static str, &'static str)>,
    /// Whether the store cannot be reached.
    pub(crate) storeless: bool,
    pub(crate) steps: &'static [Step],
}

/// One request from 127.0.0.1, and its answer.
pub(crate) struct Step {
    /// Method and target.
    pub(crate) request: &'static str,
    pub(crate) fields: Fields,
    /// What the service behind answers, should it be asked: status, fields, body.
    pub(crate) upstream: (u16, Fields, &'static str),
    /// Whether it should be.
    pub(crate) passes: bool,
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

/// Nothing special about it.
const BASE: Case = Case { name: "", policy: "", keys: None, storeless: false, steps: &[] };

/// Admitted, with nothing special about it.
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

/// Refused, with nothing special about it.
const REFUSED: Step = Step { status: 429, passes: false, body: None, ..PASSED };

/// Refused because a service could read it in another way than it would be counted.
const AMBIGUOUS: Step = Step {
    status: 400,
    answered: &[("content-type", Some("application/problem+json"))],
    ..REFUSED
};

/// What came of a step. Names are in lower case.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) answered: Vec<(String, String)>,
    pub(crate) body: String,
    /// The request as the service behind saw it, its target called `:path`.
    pub(crate) seen: Option<Vec<(String, String)>>,
}

impl Step {
    /// Compares what came with what should.
    #[track_caller]
    pub(crate) fn check(&self, at: &str, got: &Got) {
        assert_eq!(got.status, self.status, "{at}: {got:?}");
        for (name, expected) in self.answered {
            assert_eq!(find(&got.answered, name), *expected, "{at}: {name} of the answer: {got:?}");
        }
        if let Some(body) = self.body {
            // How long to wait depends on the time of day; the header and the body agree on it.
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
