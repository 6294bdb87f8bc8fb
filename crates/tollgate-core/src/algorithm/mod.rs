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

/// The smallest backward step of a clock that counts as an error. Smaller steps are waited out,
/// since clocks of nodes may differ that much.
pub(crate) const LEAP_US_MIN: u64 = 1_000_000;

/// The params of one limit, and the operations on its state.
///
/// [`decide`](Self::decide) only reads. So a refusal or a peek changes nothing, and several limits
/// decide before any is charged. [`charge`](Self::charge) consumes units, including debts from
/// settlements. [`give_back`](Self::give_back) returns units that have not come back with time
/// already.
///
/// Time ends at [`MAX_US`](crate::MAX_US): later instants are clamped to it.
pub trait Algorithm: Copy {
    /// The state between requests. The default is that of a new key.
    type State: Clone + Default + PartialEq + fmt::Debug;

    /// The largest cost that can ever be admitted, shown as `limit`.
    fn capacity(&self) -> u64;

    /// The window shown beside the capacity: the period, or the refill time of a bucket. `None` if
    /// capacity does not come back with time.
    fn window_us(&self) -> Option<u64>;

    /// Corrects state dated more than one window ahead of `now_us`: window state to one window
    /// ahead, other state to `now_us`. Counts and debts are kept. Returns whether the state
    /// changed. A store calls it before it decides, and keeps the result even after a refusal.
    /// Otherwise a key that a wrong clock dated ahead would be refused until that date.
    fn redate(&self, state: &mut Self::State, now_us: u64) -> bool;

    /// Decides `cost` at `now_us`.
    fn decide(&self, state: &Self::State, now_us: u64, cost: u64, intent: Intent) -> Outcome;

    /// Consumes `cost`, whether or not it fits. The excess is a debt; sums saturate. A cost of zero
    /// changes nothing.
    fn charge(&self, state: &mut Self::State, now_us: u64, cost: u64) -> Receipt;

    /// [Decides](Self::decide) and [charges](Self::charge) together, so that common terms are
    /// computed once. Returns `None` and changes nothing if only [`decide`](Self::decide) can
    /// decide: for example, for a cost of zero.
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
    /// charge: at another rate, a unit is another span of time. Returning more than was charged
    /// would admit too much.
    fn give_back(&self, state: &mut Self::State, now_us: u64, units: u64, receipt: &Receipt);

    /// The instant from which the state equals that of a new key.
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
