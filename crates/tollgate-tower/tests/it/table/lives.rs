//! What requests hold while they are under way, and what frees it.

/// A policy, and what several clients do under it.
pub(crate) struct Life {
    pub(crate) name: &'static str,
    pub(crate) policy: &'static str,
    pub(crate) acts: &'static [Act],
}

/// What happens, or what holds then. Clients have names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A client asks, and has the head of its answer and [`FIRST`]. The rest waits.
    Begin(&'static str),
    /// A client asks and is held back.
    Wait(&'static str),
    /// The service sends [`LAST`] and ends its answer, and the client has all of it.
    End(&'static str),
    /// The client goes.
    Leave(&'static str),
    /// The service breaks off, and the client learns of it.
    Break(&'static str),
    /// Somebody else asks and has an answer.
    Passes,
    /// Somebody else asks and is refused.
    Refused,
    /// So much is left of the last limit.
    Left(u64),
    /// So many requests have reached the service.
    Reached(usize),
}
use Act::{Begin, Break, End, Leave, Left, Passes, Reached, Refused, Wait};

/// An answer under way, and its end.
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
