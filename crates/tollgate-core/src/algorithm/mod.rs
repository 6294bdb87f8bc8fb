//! Every algorithm is a folder: its parameters, its state, three functions, its Lua mirror, its
//! tests.

mod bucket;
pub mod calendar_window;
pub mod concurrency;
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
pub use expiry_log::ExpiryLog;
pub use fixed_window::FixedWindow;
pub use gcra::Gcra;
pub use leaky_bucket::LeakyBucket;
pub use sliding_log::SlidingLog;
pub use sliding_window::SlidingWindow;
pub use token_bucket::TokenBucket;

/// The numbers of one limit, and what can be done with its state.
///
/// [`decide`](Self::decide) only reads, so a refusal or a peek cannot change anything and several
/// limits can be asked before any is charged. [`charge`](Self::charge) takes what was admitted, and
/// also what a settlement owes beyond it. [`give_back`](Self::give_back) returns what time has not
/// returned already.
///
/// Time ends at [`MAX_US`](crate::MAX_US): a later instant counts as that one.
pub trait Algorithm: Copy {
    /// What is kept between requests. The default is that of a key never seen.
    type State: Clone + Default + PartialEq + fmt::Debug;

    /// The largest cost that can ever be admitted, which is also the `limit` shown.
    fn capacity(&self) -> u64;

    /// The window to show beside the capacity: the period, or the time a full bucket takes to
    /// refill; `None` where capacity does not come back by itself.
    fn window_us(&self) -> Option<u64>;

    /// Brings window state dated more than one window ahead of `now_us` back to one window ahead,
    /// counts kept, and says whether there was any. A store calls it before it decides, and keeps
    /// the result even of a refusal: a decision cannot change the state, so a key that a leaping
    /// clock filled would otherwise be one window ahead of every instant until the leap has passed,
    /// whatever `retry_after` promised.
    fn redate(&self, _state: &mut Self::State, _now_us: u64) -> bool {
        false
    }

    /// Answers for `cost` at `now_us`.
    fn decide(&self, state: &Self::State, now_us: u64, cost: u64, intent: Intent) -> Outcome;

    /// Consumes `cost` whether or not it fits, saturating; what does not fit is a debt. Zero
    /// changes nothing.
    fn charge(&self, state: &mut Self::State, now_us: u64, cost: u64) -> Receipt;

    /// [Decides](Self::decide) and [charges](Self::charge) in one go: what both need is then
    /// computed once. `None`, and nothing changed, where the cost is zero or not admitted, or where
    /// this is no faster than one after the other.
    #[inline(always)]
    fn take(&self, state: &mut Self::State, now_us: u64, cost: u64) -> Option<(Outcome, Receipt)> {
        let outcome = self.decide(state, now_us, cost, Intent::Take);
        (outcome.admitted && cost > 0).then(|| (outcome, self.charge(state, now_us, cost)))
    }

    /// Returns `units` of the charge that `receipt` describes. `self` is what it was charged under,
    /// even where the limit has other numbers by now: at another rate a unit is another span of
    /// time, and returning more than was taken would admit too much.
    fn give_back(&self, state: &mut Self::State, now_us: u64, units: u64, receipt: &Receipt);

    /// The instant from which the state is as good as none.
    fn idle_at_us(&self, state: &Self::State) -> u64;
}
