//! Batches of requests with any number of charges, for limits whose state is one TAT or a count of
//! windows. Their script costs half of `decide.lua`.

use super::Batch;
use super::charge_kinds::ChargeKinds;
use tollgate_core::Intent;

/// A batch for `decide_fast.lua`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FastBatch {
    pub(crate) kinds: ChargeKinds,
    /// The program of `decide_fast.lua`.
    program: Vec<u8>,
}

impl FastBatch {
    /// Builds the batch; `None` if it needs `decide.lua`.
    pub(crate) fn of(batch: &Batch) -> Option<Self> {
        let mut kinds = ChargeKinds::default();
        let mut program = Vec::with_capacity(2 * batch.requests.len() + 4 * batch.charges.len());
        for (intent, charges) in batch.live_requests() {
            program.push(u8::from(intent == Intent::Take));
            program.push(u8::try_from(charges.len()).ok()?);
            for charge in charges {
                let kind = kinds.number_of(batch, charge)?;
                for number in [charge.key + 1, kind] {
                    program.extend(u16::try_from(number).ok()?.to_be_bytes());
                }
            }
        }
        Some(Self { kinds, program })
    }

    /// The script's arguments besides the keys.
    pub(crate) fn into_arguments(self) -> [Vec<u8>; 3] {
        [self.kinds.packed(), self.kinds.modes(), self.program]
    }
}

#[cfg(test)]
mod tests;
