//! Blocks that this node knows: from answers of the store, or set by operators through this node.
//! They hold while the node decides without the store.

use super::failure::{failure_policy, keeps_blocks};
use super::{DecisionRequest, Gate};
use ahash::RandomState;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tollgate_core::Intent;
use tollgate_store::{Answers, Charge, Origin, Store};

/// Limit of blocks that answers of the store add: clients can cause penalties.
const SEEN_MAX: usize = 65_536;

/// The end of each known block, by a keyed hash of limit and key.
#[derive(Debug, Default)]
pub(super) struct KnownBlocks {
    hasher: RandomState,
    ends: RwLock<HashMap<u64, u64, RandomState>>,
}

impl KnownBlocks {
    /// Keeps a block that an operator set through this node.
    pub(super) fn insert(&self, charge: &Charge<'_>, until_us: u64) {
        let mut ends = self.write();
        let end_us = ends.entry(self.id(charge)).or_default();
        *end_us = until_us.max(*end_us);
    }

    /// Keeps a block that an answer of the store shows, if there is room.
    fn insert_seen(&self, charge: &Charge<'_>, until_us: u64) {
        let mut ends = self.write();
        if ends.len() < SEEN_MAX || ends.contains_key(&self.id(charge)) {
            ends.insert(self.id(charge), until_us);
        }
    }

    pub(super) fn remove(&self, charge: &Charge<'_>) {
        let id = self.id(charge);
        // Most keys have no block, and readers do not wait for each other.
        if self.read().contains_key(&id) {
            self.write().remove(&id);
        }
    }

    /// The time until the block of the charge's key ends; `None` outside a known block.
    pub(super) fn left_us(&self, charge: &Charge<'_>, now_us: u64) -> Option<u64> {
        let ends = self.read();
        let end_us = ends.get(&self.id(charge))?;
        end_us.checked_sub(now_us).filter(|left_us| *left_us > 0)
    }

    /// Drops blocks that have ended.
    pub(super) fn expire(&self, now_us: u64) {
        if self.read().values().any(|end_us| *end_us <= now_us) {
            self.write().retain(|_, end_us| *end_us > now_us);
        }
    }

    fn id(&self, charge: &Charge<'_>) -> u64 {
        self.hasher.hash_one((charge.limit, charge.key))
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<u64, u64, RandomState>> {
        self.ends.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<u64, u64, RandomState>> {
        self.ends.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> Gate<S> {
    /// Remembers the blocks that the store shows, and forgets those that it shows no more.
    pub(super) fn learn_blocks(
        &self,
        request: &DecisionRequest<'_, '_>,
        answered: &[bool],
        answers: &Answers,
    ) {
        let is_empty = self.known_blocks.read().is_empty();
        for (index, range) in request.unanswered(answered).enumerate() {
            let (limits, charges) = (&request.limits[range.clone()], &request.charges[range]);
            let (_, rows) = answers.get(index).unwrap_or((true, &[]));
            for ((limit, charge), row) in limits.iter().zip(charges).zip(rows) {
                // A replica may have answered a peek, and a lease knows no blocks.
                let is_current = limit.intent == Intent::Take && row.origin == Origin::State;
                if row.blocked && keeps_blocks(failure_policy(&limit.selected)) {
                    let until_us = request.now_us.saturating_add(row.outcome.reset_after_us);
                    self.known_blocks.insert_seen(charge, until_us);
                } else if !is_empty && is_current && !row.blocked {
                    self.known_blocks.remove(charge);
                }
            }
        }
    }
}
