//! Operator actions on one key: inspect, reset, block.

use super::failure::keeps_blocks;
use super::{FromAnswer, Gate};
use crate::engine::{GateBuffers, Row, Rules};
use std::collections::BTreeSet;
use tollgate_core::{Intent, LimitParams, MAX_US, Outcome};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::Limit;
use tollgate_policy::policy::{Selected, TierParams};
use tollgate_store::{
    Adjustment, Answers, Change, Charge, ChargeMode, LeaseStore, LedgerReport, ParamsId, Request,
    StateKey, Store, StoreCall, StoreError,
};

/// A reset reads the clock before the store forgets the charges. Charges made in between are dated
/// up to this much later.
const RESET_SPAN_US: u64 = 100_000;

/// The state of one limit for a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspected<'r> {
    /// The answer to a peek at cost 0: refused only during a block.
    pub row: Row<'r>,
    /// The answer of the algorithm, as if there were no block.
    pub unblocked_outcome: Outcome,
    /// The units that are used, also those beyond the limit.
    pub used: u64,
    /// The parameters of the key's tier.
    pub params: LimitParams,
    /// The end of the block, if the key is blocked.
    pub blocked_until_us: Option<u64>,
    /// The nodes that hold units of a leased limit.
    pub ledger: Option<LedgerReport>,
}

impl<S: LeaseStore> Gate<S> {
    /// The state of every limit for the key in the facts, whether or not the limit matches. Limits
    /// whose attributes are missing are left out.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn inspect<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        limit: Option<&str>,
    ) -> Result<Vec<Inspected<'r>>, StoreError> {
        let mut inspected = Vec::new();
        let mut gate_buffers = GateBuffers::default();
        for index in rules.indices_named(limit) {
            rules.policy().select_one(index, facts, 0, &mut gate_buffers.selection);
            for one in rules.policy().selected(&gate_buffers.selection).filter(|one| !one.missing) {
                // Only enforced limits show a block, and operators want to see it in any mode.
                let charges = [Charge { mode: ChargeMode::Enforce, ..rules.plain_charge(&one) }];
                let request = Request { charges: &charges, intent: Intent::Peek };
                self.store
                    .call(now_us, StoreCall::Decide(&[request]), &mut gate_buffers.answers)
                    .await?;
                let Some((_, [answer])) = gate_buffers.answers.get(0) else { continue };
                let answer = *answer;
                let (mut unblocked_outcome, mut blocked_until_us) = (answer.outcome, None);
                if answer.blocked {
                    // At cost 0 only a block makes a client wait. A shadow limit ignores the block.
                    let left_us = answer.outcome.retry_after_us;
                    blocked_until_us = left_us.map(|left_us| now_us.saturating_add(left_us));
                    let shadow = [Charge { mode: ChargeMode::Shadow, ..charges[0] }];
                    let request = [Request { charges: &shadow, intent: Intent::Peek }];
                    self.store
                        .call(now_us, StoreCall::Decide(&request), &mut gate_buffers.answers)
                        .await?;
                    if let Some((_, [answer])) = gate_buffers.answers.get(0) {
                        unblocked_outcome = answer.outcome;
                    }
                }
                let row = Row::from_answer(rules, &one, &answer);
                let mut ledger = None;
                if rules.is_leased(&one) {
                    ledger = self.store.lease_report(&charges[0]).await?;
                }
                let used = self.used(rules, now_us, &one, &unblocked_outcome).await?;
                inspected.push(Inspected {
                    row,
                    unblocked_outcome,
                    used,
                    params: *one.params,
                    blocked_until_us,
                    ledger,
                });
            }
        }
        Ok(inspected)
    }

    /// The units that a key uses. After a change to a smaller limit, or a cost that was settled
    /// above the estimate, they are more than the limit has.
    pub(super) async fn used(
        &self,
        rules: &Rules,
        now_us: u64,
        one: &Selected<'_>,
        outcome: &Outcome,
    ) -> Result<u64, StoreError> {
        let widest =
            one.params.widest().filter(|_| outcome.remaining == 0 && !rules.is_leased(one));
        let Some(widest) = widest else {
            return Ok(outcome.limit.saturating_sub(outcome.remaining));
        };
        let charge = Charge {
            params: &widest,
            params_id: ParamsId::default(),
            cost: 0,
            // A block would hide the count.
            mode: ChargeMode::Shadow,
            ..rules.plain_charge(one)
        };
        let (charges, mut answers) = ([charge], Answers::default());
        let request = [Request { charges: &charges, intent: Intent::Peek }];
        self.store.call(now_us, StoreCall::Decide(&request), &mut answers).await?;
        let outcome =
            answers.get(0).and_then(|(_, rows)| rows.first()).map_or(outcome, |it| &it.outcome);
        Ok(outcome.limit.saturating_sub(outcome.remaining))
    }

    /// The limits (or the one named) that are unlimited for this client, in file order.
    pub fn unlimited<'r>(
        &self,
        rules: &'r Rules,
        facts: &Facts<'_>,
        limit: Option<&str>,
    ) -> Vec<&'r Limit> {
        let limits = rules.policy().limits();
        let unlimited = rules.policy().unlimited(facts).map(|index| &limits[index]);
        unlimited.filter(|one| limit.is_none_or(|name| *one.name == *name)).collect()
    }

    /// Drops the state of the limits for the key in the facts, including penalties, blocks and the
    /// state of candidates. Charges up to `now_us` are no longer given back. Returns the names of
    /// those limits.
    ///
    /// # Errors
    ///
    /// If the store fails. Some limits may have been reset.
    pub async fn reset<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        limit: Option<&str>,
    ) -> Result<Vec<&'r str>, StoreError> {
        self.change(rules, now_us, facts, limit, None).await
    }

    /// Blocks the key in the facts until `until_us`; `None` ends every block of the key. Returns
    /// the names of the limits.
    ///
    /// # Errors
    ///
    /// If the store fails. Some limits may have been changed.
    pub async fn block<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        limit: Option<&str>,
        until_us: Option<u64>,
    ) -> Result<Vec<&'r str>, StoreError> {
        let change = until_us.map_or(Change::Unblock, |until_us| Change::Block { until_us });
        self.change(rules, now_us, facts, limit, Some(change)).await
    }

    /// Changes every state of the limits for the key; `None` resets it.
    async fn change<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        limit: Option<&str>,
        change: Option<Change>,
    ) -> Result<Vec<&'r str>, StoreError> {
        let (mut done, mut gate_buffers) = (Vec::new(), GateBuffers::default());
        for index in rules.indices_named(limit) {
            rules.policy().select_one(index, facts, 0, &mut gate_buffers.selection);
            if change.is_none() && rules.policy().has_candidates() {
                // A candidate that kept its count would be compared with a limit that starts anew.
                rules.policy().select_candidates(&mut gate_buffers.selection, |_| true);
            }
            for one in rules.policy().selected(&gate_buffers.selection).filter(|one| !one.missing) {
                let mut changed = BTreeSet::new();
                for (params_index, TierParams { id, params, .. }) in rules.variants(&one) {
                    let (limit, params_id) = (*id, ParamsId::default());
                    let charge = Charge { limit, params, params_id, ..rules.plain_charge(&one) };
                    let mut selected = one;
                    (selected.id, selected.params) = (limit, params);
                    selected.params_index = params_index;
                    self.change_local(rules, now_us, &selected, &charge, change);
                    // Tiers of one period share their state.
                    if !changed.insert(limit) {
                        continue;
                    }
                    let adjustment = change.map(|change| Adjustment { charge, change });
                    let call = match &adjustment {
                        Some(adjustment) => StoreCall::Adjust(std::slice::from_ref(adjustment)),
                        None => StoreCall::Reset { limit, key: one.key },
                    };
                    let call_us = call_us(now_us, &charge, change);
                    self.store.call(call_us, call, &mut Answers::default()).await?;
                    self.forget_refusal(limit, one.key);
                }
                if one.index == index {
                    done.push(rules.name(index));
                }
            }
        }
        Ok(done)
    }

    /// Changes the state by which this node decides while the store fails. Blocks are kept apart
    /// from the fallback store, since the store may end them.
    fn change_local(
        &self,
        rules: &Rules,
        now_us: u64,
        selected: &Selected<'_>,
        charge: &Charge<'_>,
        change: Option<Change>,
    ) {
        if let Some(Change::Block { until_us }) = change {
            if keeps_blocks(selected.limit.on_store_failure) {
                self.known_blocks.insert(charge, until_us);
            }
            return;
        }
        self.known_blocks.remove(charge);
        let Some(fallback) = self.fallback.get() else { return };
        let (limit, params) = rules.local(selected);
        let charge = Charge { limit, params: &params, ..*charge };
        let adjustment = change.map(|change| [Adjustment { charge, change }]);
        let call = match &adjustment {
            Some(adjustment) => StoreCall::Adjust(adjustment),
            None => StoreCall::Reset { limit, key: charge.key },
        };
        fallback.begin(call_us(now_us, &charge, change), call, &mut Answers::default());
    }
}

/// The instant of a change; of a reset, the latest at which it may forget a charge. Give-backs of
/// charges up to then return nothing, but slots. Entries of a log are given back by instants of
/// their own.
fn call_us(now_us: u64, charge: &Charge<'_>, change: Option<Change>) -> u64 {
    match (change, charge.params) {
        (Some(_), _) => now_us,
        (None, LimitParams::SlidingLog(_)) => now_us,
        (None, _) => now_us.saturating_add(RESET_SPAN_US).min(MAX_US),
    }
}

impl<S: Store> Gate<S> {
    /// Drops the cached refusals of a key that only the store can name.
    pub(crate) fn forget_refusals_of_state(&self, state_key: &StateKey) {
        if let Some(deny_cache) = &self.deny_cache {
            deny_cache.forget_state(state_key);
        }
    }

    pub(super) fn forget_refusals(&self, adjustments: &[Adjustment<'_>]) {
        adjustments.iter().for_each(|one| self.forget_refusal(one.charge.limit, one.charge.key));
    }

    fn forget_refusal(&self, limit: u64, key: &[u8]) {
        if let Some(deny_cache) = &self.deny_cache {
            deny_cache.forget(limit, key);
        }
    }
}

impl Rules {
    /// The index of the limit with this name, or the indices of all.
    fn indices_named<'a>(&'a self, limit: Option<&'a str>) -> impl Iterator<Item = usize> + 'a {
        let limits = self.policy().limits().iter().enumerate();
        limits.filter(move |(_, one)| limit.is_none_or(|name| *one.name == *name)).map(|(n, _)| n)
    }

    fn name(&self, index: usize) -> &str {
        &self.policy().limits()[index].name
    }

    /// The parameters of the limit's tiers for one key, each with its index in the policy. Tiers
    /// with the same id share their state.
    fn variants(&self, one: &Selected<'_>) -> impl Iterator<Item = (usize, &TierParams)> {
        let (limit, key) = (one.index, one.key_index);
        let all = self.policy().tier_params().iter().enumerate();
        all.filter(move |(_, one)| one.limit == limit && one.key == key)
    }
}
