//! The algorithms, a folder each: params, state, functions, Lua mirror, tests.

mod bucket;
pub mod calendar_window;
pub mod concurrency;
mod dated_tat;
mod expiry_log;
pub mod fixed_window;
pub mod gcra;
pub mod leaky_bucket;
mod muldiv;
pub mod sliding_log;
pub mod sliding_window;
pub mod token_bucket;
mod window;

use crate::{Intent, Outcome, Receipt};
use core::fmt;

pub use bucket::{Bucket, Tat};
pub use calendar_window::CalendarWindow;
pub use concurrency::Concurrency;
pub use dated_tat::DatedTat;
pub use expiry_log::ExpiryLog;
pub use fixed_window::FixedWindow;
pub use gcra::Gcra;
pub use leaky_bucket::LeakyBucket;
pub use sliding_log::SlidingLog;
pub use sliding_window::SlidingWindow;
pub use token_bucket::TokenBucket;

/// A clock that steps back by less is waited out: clocks of nodes may differ by so much.
pub(crate) const LEAP_US_MIN: u64 = 1_000_000;

/// The params of one limit, and the operations on its state.
///
/// [`decide`](Self::decide) only reads: a refusal or a peek changes nothing, and several limits are
/// asked before any is charged. [`charge`](Self::charge) consumes units, also a settlement's debt.
/// [`give_back`](Self::give_back) returns units that time has not returned already.
///
/// Time ends at [`MAX_US`](crate::MAX_US): a later instant counts as that one.
pub trait Algorithm: Copy {
    /// The state between requests. The default is that of a new key.
    type State: Clone + Default + PartialEq + fmt::Debug;

    /// The largest cost that can ever be admitted, which is also the `limit` shown.
    fn capacity(&self) -> u64;

    /// The window to show beside the capacity: the period, or the refill time of a bucket; `None`
    /// if capacity does not come back by itself.
    fn window_us(&self) -> Option<u64>;

    /// Moves state dated more than one window ahead of `now_us` back, and keeps its counts and
    /// debts: window state to one window ahead, other state to `now_us`. Returns whether it
    /// changed. A store calls it before it decides, and keeps the result even after a refusal: a
    /// key that a leaping clock dated would otherwise be refused until the leap has passed.
    fn redate(&self, state: &mut Self::State, now_us: u64) -> bool;

    /// Answers for `cost` at `now_us`.
    fn decide(&self, state: &Self::State, now_us: u64, cost: u64, intent: Intent) -> Outcome;

    /// Consumes `cost`, whether or not it fits, saturating; the excess is a debt. Zero changes
    /// nothing.
    fn charge(&self, state: &mut Self::State, now_us: u64, cost: u64) -> Receipt;

    /// [Decides](Self::decide) and [charges](Self::charge) at once, so that common terms are
    /// computed once. `None`, with nothing changed, if only [`decide`](Self::decide) can tell: a
    /// cost of zero, for one.
    #[inline(always)]
    fn take(&self, state: &mut Self::State, now_us: u64, cost: u64) -> Option<Taken> {
        if cost == 0 {
            return None;
        }
        let outcome = self.decide(state, now_us, cost, Intent::Take);
        Some(if outcome.admitted {
            Taken::Charged(outcome, self.charge(state, now_us, cost))
        } else {
            Taken::Refused(outcome)
        })
    }

    /// Returns `units` of the charge that `receipt` describes. `self` must be the params of that
    /// charge: at another rate a unit is another span of time, and returning more than was taken
    /// would admit too much.
    fn give_back(&self, state: &mut Self::State, now_us: u64, units: u64, receipt: &Receipt);

    /// From when on the state is as good as none.
    fn idle_at_us(&self, state: &Self::State) -> u64;
}

/// The result of [`Algorithm::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The cost was admitted and charged.
    Charged(Outcome, Receipt),
    /// The cost was refused, and nothing changed.
    Refused(Outcome),
}
