//! Rate-limit engine: quotas by key, or a policy file, over a memory or shared store.
//!
//! A [`Limiter`] enforces quotas, with a count for every key. The [`guide`] shows the rest:
//!
//! ```
//! use tollgate::{Decision, Limiter, Quota};
//!
//! let limiter = Limiter::new(Quota::per_minute(100));
//! match limiter.check("alice") {
//!     Decision::Admitted(permit) => println!("go ahead, {} left", permit.remaining),
//!     Decision::Refused(refusal) => println!("not now: {refusal}"),
//! }
//! ```
//!
//! A [`Gate`] enforces a policy: many limits, and rules that say which of them apply to a request.
//! It takes facts and returns a [`Verdict`]. A refusal is an answer, not an error. Time is an
//! argument, so tests need no clock.
//!
//! ```
//! use tollgate::{Gate, MemoryStore, Setup, Work, policy};
//!
//! let file = b"limits: [{name: per-user, key: [user], rate: 2/s, algorithm: gcra}]";
//! let file = policy::compile(file).unwrap();
//! let gate = Gate::new(Setup::of(&file), MemoryStore::default())?;
//!
//! let rules = gate.rules(); // a reload does not change them
//! let mut work = Work::default(); // reused, so that deciding allocates nothing
//! let mut facts = rules.facts(Default::default());
//! facts.set("user", "42")?;
//! let now_us = 1_700_000_000_000_000;
//! assert!(gate.check(&rules, now_us, &facts, 1, &mut work).now().allowed);
//! assert!(gate.check(&rules, now_us, &facts, 1, &mut work).now().allowed);
//! let refused = gate.check(&rules, now_us, &facts, 1, &mut work).now();
//! assert_eq!((refused.allowed, refused.retry_after_us), (false, Some(500_000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffers;
mod deny_cache;
mod gate;
pub mod guide;
mod key;
pub mod limiter;
pub mod policy;
pub mod quota;
#[cfg(doctest)]
mod readme;
mod reservation;
mod rules;
mod verdict;

pub use buffers::{BufferPool, Work};
pub use deny_cache::DenyCache;
pub use gate::{
    ChargeMode, Gate, Inspected, MultiCheck, MultiVerdict, RulesGuard, SingleCheck, SingleVerdict,
};
pub use key::Key;
#[cfg(feature = "tokio")]
pub use limiter::WaitError;
pub use limiter::{Decision, Limiter, Permit, Refusal, Reservation, Standing};
pub use quota::Quota;
pub use reservation::{
    AdmissionOptions, InFlightCharges, ReservationEnd, ReservationError, Settled, TTL_US_MAX,
};
pub use rules::{Counts, ModeOverride, Rules, Setup};
pub use tollgate_policy::{HttpPolicy, limit};
pub use tollgate_store as store;
#[cfg(feature = "tokio")]
pub use tollgate_store::TokioClock;
pub use tollgate_store::{
    Clock, LeaseStore, ManualClock, MemoryStore, ProcessClock, ReservationStore, Store, StoreError,
    StoreReply,
};
pub use verdict::{Row, Source, Verdict};
