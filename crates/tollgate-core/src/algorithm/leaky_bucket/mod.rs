//! Leaky bucket: a strict pace. With `queue` 0 it refuses the excess; with a queue, it delays
//! admitted requests.

use super::Taken;
use super::bucket::Bucket;
use super::dated_tat::{DatedTat, keeps_a_tat};
use crate::{Algorithm, Intent, InvalidParams, Outcome, Rate, Receipt};

/// A rate with `burst` units ahead of the pace and `queue` units that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeakyBucket(Bucket);

impl LeakyBucket {
    /// Creates a limit. `burst` defaults to 1, `queue` to 0.
    pub fn try_new(
        rate: Rate,
        burst: Option<u64>,
        queue: Option<u64>,
    ) -> Result<Self, InvalidParams> {
        Bucket::try_new(rate, burst.unwrap_or(1), queue.unwrap_or(0)).map(Self)
    }

    /// The bucket.
    pub const fn bucket(&self) -> &Bucket {
        &self.0
    }
}

keeps_a_tat!(LeakyBucket);

#[cfg(test)]
mod tests;
