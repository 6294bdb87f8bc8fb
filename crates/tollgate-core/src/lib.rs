//! Rate-limit algorithms, penalties and `RateLimit` headers: no clock, no I/O, no async.
//!
//! Nothing here reads a clock, does I/O or allocates on a decision. Time is an argument, in integer
//! microseconds since the Unix epoch. Every quantity is an integer or an exact fraction, so that
//! another language can make the same decision: each algorithm has a Lua mirror beside it.
//!
//! ```
//! use tollgate_core::{Algorithm, Intent, Rate, algorithm::Gcra};
//!
//! let limit = Gcra::try_new(Rate::try_new(5, 1_000_000)?, None)?; // 5 per second, burst 5
//! let mut state = Default::default();
//! let now_us = 1_700_000_000_000_000;
//! for _ in 0..5 {
//!     assert!(limit.decide(&state, now_us, 1, Intent::Take).admitted);
//!     limit.charge(&mut state, now_us, 1);
//! }
//! let refused = limit.decide(&state, now_us, 1, Intent::Take);
//! assert_eq!(refused.retry_after_us, Some(200_000));
//! # Ok::<(), tollgate_core::InvalidParams>(())
//! ```
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod algorithm;
mod calendar;
mod decimal;
pub mod header;
pub mod lua;
mod outcome;
mod params;
pub mod penalty;
mod rate;
mod state_id;
mod varint;
pub mod written_rate;

pub use algorithm::Algorithm;
pub use calendar::{CalendarSpan, CalendarUnit, OffsetChange, Zone, days_from_civil};
pub use decimal::push_decimal;
pub use outcome::{Intent, Outcome, Receipt};
pub use params::{LimitParams, LimitState};
pub use penalty::Penalty;
pub use rate::{InvalidParams, MAX_US, Rate};
pub use state_id::state_id;
pub use varint::{push_varint, take_varint};
