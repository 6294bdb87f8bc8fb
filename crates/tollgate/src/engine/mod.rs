//! The engine: decides requests by a policy. Used by Tollgate's server and its tower layer.
//!
//! A [`Gate`] enforces a policy: many limits, and rules that select limits for a request. It takes
//! facts and returns a [`Verdict`]. A refusal is an answer, not an error. Time is an argument, so
//! tests need no clock.
//!
//! ```
//! use tollgate::MemoryStore;
//! use tollgate::engine::{Gate, GateSetup, GateBuffers, policy};
//!
//! let file = b"limits: [{name: per-user, key: [user], rate: 2/s, algorithm: gcra}]";
//! let gate = Gate::new(GateSetup::of(&policy::compile(file)?), MemoryStore::default())?;
//!
//! let rules = gate.rules(); // a reload does not change them
//! let mut work = GateBuffers::default(); // reused, so that deciding allocates nothing
//! let mut facts = rules.facts(Default::default());
//! facts.set("user", "42")?;
//! let now_us = 1_700_000_000_000_000;
//! assert!(gate.check(&rules, now_us, &facts, 1, &mut work).now().allowed);
//! assert!(gate.check(&rules, now_us, &facts, 1, &mut work).now().allowed);
//! let refused = gate.check(&rules, now_us, &facts, 1, &mut work).now();
//! assert_eq!((refused.allowed, refused.retry_after_us), (false, Some(500_000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod policy;

pub use crate::buffers::{BufferPool, GateBuffers};
pub use crate::deny_cache::DenyCache;
pub use crate::gate::{
    DecisionObserver, DescriptorMode, ExplainedCandidate, ExplainedDecision, ExplainedLimit,
    Explanation, Gate, Inspected, MultiCheck, MultiVerdict, ObservedAdjustment, ObservedDecision,
    ReservedUnits, RulesGuard, SingleCheck, SingleVerdict,
};

pub use crate::reservation::{
    AdmissionOptions, InFlightCharges, ReservationEnd, ReservationError, SettledReservation,
    TTL_US_MAX, UnfinishedCharges,
};
pub use crate::rules::{
    CandidateCounts, Counts, GateSetup, ModeOverride, Rules, ShedCounts, thread_number,
};
pub use crate::shed::{
    AdaptiveSettings, AdaptiveShedder, CLASSES_MAX, ClassCounts, Entry, QueuedEntry, ShedReason,
    ShedRefusal, ShedRequest, ShedSnapshot, ShedTicket, UpstreamOutcome, UpstreamReport,
};
pub use crate::verdict::{Row, ShedVerdict, Source, Verdict};
pub use tollgate_policy::{HttpPolicy, limit};
