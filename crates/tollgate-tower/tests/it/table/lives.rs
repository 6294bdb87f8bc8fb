//! The charges that requests in flight hold, and what frees them.

/// A policy, and the actions of several clients under it.
pub(crate) struct Life {
    pub(crate) name: &'static str,
    pub(crate) policy: &'static str,
    pub(crate) acts: &'static [Act],
}

/// An action, or an expectation. Clients have names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A client sends a request, and gets the head of the response and [`FIRST`]. The rest follows
    /// later.
    Begin(&'static str),
    /// A client sends a request, which is delayed.
    Wait(&'static str),
    /// The service sends [`LAST`] and ends the response, and the client gets all of it.
    End(&'static str),
    /// The client disconnects.
    Leave(&'static str),
    /// The service aborts the response, and the client sees the error.
    Break(&'static str),
    /// Another client sends a request and gets a response.
    Passes,
    /// Another client sends a request and is refused.
    Refused,
    /// The remaining units of the last limit.
    Left(u64),
    /// The number of requests that reached the service.
    Reached(usize),
}
use Act::{Begin, Break, End, Leave, Left, Passes, Reached, Refused, Wait};

/// A response that is not complete, and its end.
pub(crate) const FIRST: &str = "{\"n\": 4";
pub(crate) const LAST: &str = "2}";

const SLOT: &str = "limits: [{name: slots, algorithm: concurrency, rate: 1, ttl: 1h}]";
const TOKENS: &str = "limits: [{name: tokens, rate: 100/366d, algorithm: gcra, cost: {estimate: 10, response: {json: n}}}]";
const PACE: &str = "limits: [{name: all, rate: 100/366d, algorithm: gcra}, {name: pace, algorithm: leaky-bucket, rate: 1/366d, queue: 1}]";

pub(crate) const LIVES: &[Life] = &[
    Life {
        name: "a slot is held until the answer ends",
        policy: SLOT,
        acts: &[Begin("a"), Left(0), Refused, End("a"), Left(1), Passes, Left(1)],
    },
    Life {
        name: "a client that leaves frees its slot",
        policy: SLOT,
        acts: &[Begin("a"), Refused, Leave("a"), Left(1), Begin("b"), Refused, Leave("b"), Left(1)],
    },
    Life {
        name: "a service that breaks off frees the slot",
        policy: SLOT,
        acts: &[Begin("a"), Refused, Break("a"), Left(1), Passes],
    },
    Life {
        name: "a cost is settled at the end, and reserved until then",
        policy: TOKENS,
        acts: &[Begin("a"), Left(90), Begin("b"), Left(80), End("a"), Left(48), End("b"), Left(16)],
    },
    Life {
        name: "an answer that breaks off costs the estimate at least",
        policy: TOKENS,
        acts: &[Begin("a"), Break("a"), Begin("b"), Leave("b"), Begin("c"), End("c"), Left(38)],
    },
    Life {
        name: "a waiting request has not reached the service, and one that leaves makes room",
        policy: PACE,
        acts: &[
            Passes,
            Reached(1),
            Wait("a"),
            Left(0),
            Refused,
            Leave("a"),
            Left(1),
            Wait("b"),
            Left(0),
            Refused,
            Reached(1),
        ],
    },
];
