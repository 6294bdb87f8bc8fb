//! The decision tree: the first rule that holds chooses the algorithm. Also reasons for and
//! against.

use super::answer::{Answers, Audit, Bursts, Machines, Memory, Purpose, StoreFailure};
use Algorithm::{
    Concurrency, FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket,
};
use tollgate_policy::raw::Algorithm;

/// The algorithms that the command can choose.
pub(super) const ALGORITHMS: [Algorithm; 7] =
    [SlidingWindow, FixedWindow, SlidingLog, TokenBucket, Gcra, LeakyBucket, Concurrency];

/// A condition on the answers, and the algorithm that follows from it.
pub(super) struct Rule {
    /// The condition, as text.
    pub(super) when: &'static str,
    holds: fn(Answers) -> bool,
    pub(super) algorithm: Algorithm,
    pub(super) why: &'static str,
}

/// The first rule that holds decides. The last one always holds.
pub(super) const RULES: [Rule; 10] = [
    Rule {
        when: "purpose shape",
        holds: |a| a.purpose == Purpose::Shape,
        algorithm: LeakyBucket,
        why: "it is the one with a queue: requests wait for their turn and leave at an even pace",
    },
    Rule {
        when: "purpose bill",
        holds: |a| a.purpose == Purpose::Bill,
        algorithm: FixedWindow,
        why: "an invoice is about a calendar month: exactly the quota in each month, and each starts anew",
    },
    Rule {
        when: "audit yes, bursts no",
        holds: |a| a.audit == Audit::Yes && a.bursts == Bursts::No,
        algorithm: LeakyBucket,
        why: "an even pace keeps every window at the limit, with one timestamp for each key",
    },
    Rule {
        when: "audit yes, memory plenty",
        holds: |a| a.audit == Audit::Yes && a.memory == Memory::Plenty,
        algorithm: SlidingLog,
        why: "it remembers each admission, so that no window sees more than the limit, wherever it starts",
    },
    Rule {
        when: "audit yes, memory tight",
        holds: |a| a.audit == Audit::Yes,
        algorithm: Gcra,
        why: "one timestamp for each key; burst and rate together make up the limit, so that no window exceeds it",
    },
    Rule {
        when: "purpose protect, bursts yes, memory plenty",
        holds: |a| {
            a.purpose == Purpose::Protect && a.bursts == Bursts::Yes && a.memory == Memory::Plenty
        },
        algorithm: TokenBucket,
        why: "it has two numbers: the burst that the service can absorb, and the rate that it can sustain",
    },
    Rule {
        when: "purpose protect, bursts yes, memory tight",
        holds: |a| a.purpose == Purpose::Protect && a.bursts == Bursts::Yes,
        algorithm: Gcra,
        why: "it decides as a token bucket does, burst and rate, from one timestamp for each key",
    },
    Rule {
        when: "purpose protect, bursts no, memory plenty",
        holds: |a| a.purpose == Purpose::Protect && a.memory == Memory::Plenty,
        algorithm: Concurrency,
        why: "the load of a service is the work in progress: slow requests hold their slots for longer",
    },
    Rule {
        when: "bursts no",
        holds: |a| a.bursts == Bursts::No,
        algorithm: LeakyBucket,
        why: "it keeps a strict pace, one request after the other, with one timestamp for each key",
    },
    Rule {
        when: "otherwise",
        holds: |_| true,
        algorithm: SlidingWindow,
        why: "one number that clients understand, and no gap between windows; nonstop clients get a unit less",
    },
];

/// The result of the answers. Two sets of answers with equal choices get the same limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) algorithm: Algorithm,
    /// The condition that decided, and the reason.
    pub(super) when: &'static str,
    pub(super) why: &'static str,
    pub(super) purpose: Purpose,
    pub(super) numbers: Numbers,
    pub(super) is_shared: bool,
    pub(super) has_little_memory: bool,
    pub(super) is_audited: bool,
    /// `None` for the memory store, which fails only together with its process.
    pub(super) store_failure: Option<StoreFailure>,
}

/// The numeric fields of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) rate: u32,
    /// The text after the slash; `None` for slots.
    pub(super) period: Option<&'static str>,
    pub(super) burst: Option<u32>,
    pub(super) queue: Option<u32>,
}

impl Choice {
    pub(super) fn new(answers: Answers) -> Self {
        let rule = RULES.iter().find(|rule| (rule.holds)(answers));
        let rule = rule.unwrap_or(&RULES[RULES.len() - 1]);
        let is_shared = answers.machines == Machines::Many;
        Self {
            algorithm: rule.algorithm,
            when: rule.when,
            why: rule.why,
            purpose: answers.purpose,
            numbers: numbers(rule.algorithm, answers),
            is_shared,
            has_little_memory: !is_shared && answers.memory == Memory::Tight,
            is_audited: answers.audit == Audit::Yes,
            store_failure: is_shared.then_some(answers.store_failure),
        }
    }

    /// All other algorithms, with reasons against them.
    pub(super) fn rejected(&self, answers: Answers) -> Vec<(&'static str, &'static str)> {
        let others = ALGORITHMS.iter().filter(|other| **other != self.algorithm);
        others.map(|other| (other.word(), why_not(*other, answers))).collect()
    }
}

/// The numeric fields for an algorithm. If the limit is audited, the rate of a bucket is lowered by
/// its burst, since a window can see both.
fn numbers(algorithm: Algorithm, answers: Answers) -> Numbers {
    let audited_less = |burst| if answers.audit == Audit::Yes { burst } else { 0 };
    match (algorithm, answers.purpose, answers.bursts) {
        (Concurrency, ..) => Numbers { rate: 20, period: None, burst: None, queue: None },
        (_, Purpose::Bill, _) => {
            Numbers { rate: 10_000, period: Some("month"), burst: None, queue: None }
        }
        (_, Purpose::Shape, Bursts::No) => {
            Numbers { rate: 10, period: Some("s"), burst: None, queue: Some(20) }
        }
        (_, Purpose::Shape, Bursts::Yes) => Numbers {
            rate: 10 - audited_less(3),
            period: Some("s"),
            burst: Some(3),
            queue: Some(20),
        },
        (TokenBucket | Gcra, ..) => Numbers {
            rate: 100 - audited_less(20),
            period: Some("min"),
            burst: Some(20),
            queue: None,
        },
        _ => Numbers { rate: 100, period: Some("min"), burst: None, queue: None },
    }
}

const DELAYS_NOTHING: &str = "it refuses what comes too fast, and delays nothing";
const NO_MONTH: &str = "it refills all the time: no month starts anew";
const AT_ONCE: &str = "it admits the whole limit at once";

/// The reason why these answers speak against an algorithm.
fn why_not(algorithm: Algorithm, answers: Answers) -> &'static str {
    let Answers { purpose, audit, bursts, memory, .. } = answers;
    match algorithm {
        SlidingWindow => match (purpose, audit, bursts) {
            (Purpose::Shape, ..) => DELAYS_NOTHING,
            (Purpose::Bill, ..) => "its window slides: no month starts anew",
            (_, Audit::Yes, _) => "a minute across two windows may see nearly twice the limit",
            (.., Bursts::No) => AT_ONCE,
            _ => "its burst is its whole limit; a bucket has a burst of its own size",
        },
        FixedWindow => match (purpose, bursts) {
            (Purpose::Shape, _) => DELAYS_NOTHING,
            (_, Bursts::No) => AT_ONCE,
            _ => "it admits twice the limit around the end of a window",
        },
        SlidingLog => match (purpose, audit, bursts, memory) {
            (Purpose::Shape, ..) => DELAYS_NOTHING,
            (Purpose::Bill, ..) => {
                "it remembers each admission of a month, and no month starts anew"
            }
            (_, Audit::No, ..) => {
                "it remembers each admission, for an exactness that nobody audits"
            }
            (.., Bursts::No, _) => AT_ONCE,
            _ => "it remembers each admission: its memory grows with the limit",
        },
        TokenBucket => match (purpose, audit, bursts, memory) {
            (Purpose::Shape, ..) => DELAYS_NOTHING,
            (Purpose::Bill, ..) => NO_MONTH,
            (.., Bursts::No, _) => "its burst is what it is for",
            (_, Audit::Yes, ..) => "its burst and its refill add up: a window may see both",
            (.., Memory::Tight) => "it keeps twice the state of gcra for the same decisions",
            _ => "it needs a burst beside the rate, and clients have to understand both",
        },
        Gcra => match (purpose, audit, bursts) {
            (Purpose::Shape, ..) => DELAYS_NOTHING,
            (Purpose::Bill, ..) => NO_MONTH,
            (.., Bursts::No) => "its burst is what it is for; with a burst of 1 it is leaky-bucket",
            (_, Audit::Yes, _) => {
                "to keep every window at the limit it would give up part of the rate"
            }
            (Purpose::Protect, ..) => {
                "it decides as token-bucket does; its smaller state matters from millions of keys on"
            }
            _ => "it needs a burst beside the rate, and clients have to understand both",
        },
        LeakyBucket => match (purpose, bursts) {
            (Purpose::Bill, _) => "it would spread a month evenly: one request every few minutes",
            (_, Bursts::Yes) => "it refuses the second of two requests that come together",
            _ => "it counts arrivals; slow requests pile up at any pace",
        },
        Concurrency => match (purpose, audit, bursts) {
            (Purpose::Shape, ..) => "it counts requests in flight, whatever their pace",
            (Purpose::Bill, ..) => "its slots come back: nothing adds up to a quota",
            (_, Audit::Yes, _) => "it bounds requests in flight, and no window",
            (Purpose::Fair, ..) => "a client with short requests gets more than one with long ones",
            (.., Bursts::Yes) => "a burst of slow requests does not fit its slots",
            _ => "it keeps an entry for each request in flight",
        },
    }
}
