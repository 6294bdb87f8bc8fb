//! Kinds of charges: charges with equal params, cost and mode. Scripts compute the room and the
//! charge of a kind once per call, not once per charge.

use super::{Batch, BatchCharge};
use crate::ChargeMode;
use tollgate_core::lua;

/// The kinds of a batch's charges, in the order in which they first occur.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChargeKinds {
    /// Params, cost and mode, in the form that `decide_single.lua` reads.
    kinds: Vec<[u64; 8]>,
    /// Index of params, cost, and whether the charge is enforced.
    seen: Vec<(usize, u64, bool)>,
}

impl ChargeKinds {
    /// The number of a charge's kind, from one. `None` if the charge needs `decide.lua`.
    pub(crate) fn number_of(&mut self, batch: &Batch, charge: &BatchCharge) -> Option<usize> {
        let is_enforced = match charge.mode {
            ChargeMode::Enforce => true,
            ChargeMode::Shadow => false,
            ChargeMode::Owe { .. } | ChargeMode::Replaced | ChargeMode::Candidate { .. } => {
                return None;
            }
        };
        // A cost of zero fits even if the key is in debt.
        if charge.penalty.is_some() || charge.cost == 0 {
            return None;
        }
        let kind = (charge.params, charge.cost, is_enforced);
        if let Some(index) = self.seen.iter().position(|one| *one == kind) {
            return Some(index + 1);
        }
        self.kinds.push(lua::charge_kind(&batch.tables.params[charge.params], charge.cost)?);
        self.seen.push(kind);
        Some(self.seen.len())
    }

    pub(crate) const fn count(&self) -> usize {
        self.seen.len()
    }

    /// Whether any limit counts in windows; the others have a TAT.
    pub(crate) fn has_windows(&self) -> bool {
        self.kinds.iter().any(|kind| kind[4] == 0)
    }

    /// Whether all kinds are enforced.
    pub(crate) fn are_enforced(&self) -> bool {
        self.seen.iter().all(|kind| kind.2)
    }

    /// For each kind, 1 if it is enforced, else 0.
    pub(crate) fn modes(&self) -> Vec<u8> {
        self.seen.iter().map(|kind| kind.2.into()).collect()
    }

    /// The kinds, packed as seven bytes per number.
    pub(crate) fn packed(&self) -> Vec<u8> {
        let seven = |number: &u64| number.to_be_bytes().into_iter().skip(1);
        self.kinds.iter().flatten().flat_map(seven).collect()
    }
}
