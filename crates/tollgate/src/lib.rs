//! One rate-limit engine for every place where traffic passes.
//!
//! A [`Gate`] puts a policy in force over a store. Facts go in, a [`Verdict`] comes out; a refusal is an answer,
//! never an error. Time is an argument, so what you test is what runs.
//!
//! ```
//! use tollgate::{Gate, MemoryStore, Setup, Work, policy};
//!
//! let file = policy::compile(b"limits: [{name: per-user, key: [user], rate: 2/s, algorithm: gcra}]").unwrap();
//! let gate = Gate::new(Setup::of(&file), MemoryStore::default())?;
//!
//! let rules = gate.rules(); // a reload does not disturb whoever holds them
//! let mut work = Work::default(); // reused, so that deciding allocates nothing
//! let mut facts = rules.facts(Default::default());
//! facts.set("user", "42")?;
//! let now_us = 1_700_000_000_000_000;
//! assert!(gate.check_now(&rules, now_us, &facts, 1, &mut work).allowed);
//! assert!(gate.check_now(&rules, now_us, &facts, 1, &mut work).allowed);
//! let refused = gate.check_now(&rules, now_us, &facts, 1, &mut work);
//! assert_eq!((refused.allowed, refused.retry_after_us), (false, Some(500_000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counters;
mod deny_cache;
mod gate;
pub mod policy;
mod reservation;
mod rules;
mod setup;
mod source;
mod verdict;
mod work;

pub use counters::Counts;
pub use deny_cache::DenyCache;
pub use gate::{Gate, InForce, Inspected, ModeChange, UnknownLimit};
pub use reservation::{End, ReservationError, Settled, TTL_US_MAX};
pub use rules::Rules;
pub use setup::Setup;
pub use source::Source;
pub use tollgate_policy::limit;
pub use tollgate_store::{Clock, ManualClock, MemoryStore, ProcessClock, Store, StoreError};
pub use verdict::{Row, Verdict};
pub use work::Work;
