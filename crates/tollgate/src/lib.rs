//! Rate limiting: quotas by key, in memory or in Redis; and the engine that decides by a policy.
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
//! A refusal is an answer, not an error. In memory no call waits or fails.
//!
//! # Features
//!
//! None is on by default, and a limiter in memory needs none.
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `tokio` | [`Limiter::wait`], which needs timers |
//! | `redis` | counts in Redis or Valkey: [`redis`](limiter::LimiterBuilder::redis) |
//! | `policy` | [`engine`]: policy files, many limits for a request, reservations by name |
// Links to items of a feature that is off are plain text.
#![cfg_attr(
    not(all(feature = "policy", feature = "redis", feature = "tokio")),
    allow(rustdoc::broken_intra_doc_links)
)]

#[cfg(feature = "policy")]
mod buffers;
#[cfg(feature = "policy")]
mod deny_cache;
#[cfg(feature = "policy")]
pub mod engine;
#[cfg(feature = "policy")]
mod gate;
pub mod guide;
mod key;
pub mod limiter;
pub mod quota;
#[cfg(doctest)]
mod readme;
#[cfg(feature = "policy")]
mod reservation;
#[cfg(feature = "policy")]
mod rules;
mod settlement;
#[cfg(feature = "policy")]
mod shed;
mod sync;
#[cfg(feature = "policy")]
mod verdict;

pub use key::Key;
#[cfg(feature = "tokio")]
pub use limiter::WaitError;
pub use limiter::{Decision, Limiter, Permit, Refusal, Reservation, Standing};
pub use quota::Quota;
pub use tollgate_store as store;
#[cfg(feature = "tokio")]
pub use tollgate_store::TokioClock;
pub use tollgate_store::{ManualClock, MemoryStore, StoreError};
