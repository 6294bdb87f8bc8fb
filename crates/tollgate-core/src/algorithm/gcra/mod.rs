//! GCRA: a token bucket's decisions from a single timestamp. Suits many keys.

use super::Taken;
use super::bucket::Bucket;
use super::dated_tat::{DatedTat, keeps_a_tat};
use crate::{Algorithm, Intent, InvalidParams, Outcome, Rate, Receipt};

/// A burst of B units, refilled at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gcra(Bucket);

impl Gcra {
    /// Creates a limit. `burst` defaults to the rate's count.
    pub fn try_new(rate: Rate, burst: Option<u64>) -> Result<Self, InvalidParams> {
        Bucket::try_new(rate, burst.unwrap_or(rate.count().into()), 0).map(Self)
    }

    /// The bucket.
    pub const fn bucket(&self) -> &Bucket {
        &self.0
    }
}

keeps_a_tat!(Gcra);

#[cfg(test)]
mod tests;
