//! What operators do to one key: look at it, forget it, block it.

use super::{FromAnswer, Gate};
use crate::{Row, Rules, Work};
use std::collections::BTreeSet;
use tollgate_core::{Intent, LimitParams, Outcome};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::Limit;
use tollgate_policy::policy::{Selected, TierParams};
use tollgate_store::{
    Adjustment, Answers, Change, Charge, LeaseStore, LedgerReport, Mode, ParamsId, Request,
    StateKey, Store, StoreCall, StoreError,
};

/// What one limit has for a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspected<'r> {
    /// As a peek at cost 0 answers: refused only in a block.
    pub row: Row<'r>,
    /// What the algorithm itself says, as if there were no block.
    pub unblocked_outcome: Outcome,
    /// The numbers of the key's tier.
    pub params: LimitParams,
    /// The end of the block the key is in.
    pub blocked_until_us: Option<u64>,
    /// Who holds units of a leased limit.
    pub ledger: Option<LedgerReport>,
}

impl<S: LeaseStore> Gate<S> {
    /// What every limit has for the key that the facts name, whatever it matches; limits whose
    /// attributes the facts lack have nothing.
    ///
    /// # Errors
    ///
    /// When the store could not answer.
    pub async fn inspect<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        limit: Option<&str>,
    ) -> Result<Vec<Inspected<'r>>, StoreError> {
        let mut inspected = Vec::new();
        let mut work = Work::default();
        for index in rules.indices_named(limit) {
            rules.policy().select_one(index, facts, 0, &mut work.selection);
            for one in rules.policy().selected(&work.selection).filter(|one| !one.missing) {
                // A block shows to enforced limits only, and an operator wants to see it in any
                // mode.
                let charges = [Charge { mode: Mode::Enforce, ..rules.plain_charge(&one) }];
                let request = Request { charges: &charges, intent: Intent::Peek };
                self.store.call(now_us, StoreCall::Decide(&[request]), &mut work.answers).await?;
                let Some((_, [answer])) = work.answers.get(0) else { continue };
                let answer = *answer;
                let own = match answer.blocked {
                    true => self.without_block(now_us, charges[0], &mut work.answers).await?,
                    false => None,
                };
                let own = own.unwrap_or(answer.outcome);
                // At cost 0 nothing but a block makes anyone wait.
                let left_us = answer.blocked.then_some(answer.outcome.retry_after_us).flatten();
                let blocked_until_us = left_us.map(|left_us| now_us.saturating_add(left_us));
                let row = Row::from_answer(rules, &one, &answer);
                let ledger = match rules.is_leased(&one) {
                    true => self.store.lease_report(&charges[0]).await?,
                    false => None,
                };
                let params = *one.params;
                inspected.push(Inspected {
                    row,
                    unblocked_outcome: own,
                    params,
                    blocked_until_us,
                    ledger,
                });
            }
        }
        Ok(inspected)
    }

    /// What the algorithm says of a blocked key: a block does not show to a limit in shadow mode.
    async fn without_block(
        &self,
        now_us: u64,
        charge: Charge<'_>,
        answers: &mut Answers,
    ) -> Result<Option<Outcome>, StoreError> {
        let charges = [Charge { mode: Mode::Shadow, ..charge }];
        let request = Request { charges: &charges, intent: Intent::Peek };
        self.store.call(now_us, StoreCall::Decide(&[request]), answers).await?;
        Ok(answers.get(0).and_then(|(_, rows)| rows.first()).map(|answer| answer.outcome))
    }

    /// The limits (or the one named) that are unlimited for this caller, in file order.
    pub fn unlimited<'r>(
        &self,
        rules: &'r Rules,
        facts: &Facts<'_>,
        limit: Option<&str>,
    ) -> Vec<&'r Limit> {
        let limits = rules.policy().limits();
        let unlimited = rules.policy().unlimited(facts).map(|place| &limits[place]);
        unlimited.filter(|one| limit.is_none_or(|name| *one.name == *name)).collect()
    }

    /// Forgets what the limits have for the key that the facts name, penalties and blocks included.
    /// Answers with the limits it was done for.
    ///
    /// # Errors
    ///
    /// When the store could not be told; some limits may have been reset then.
    pub async fn reset<'r>(
        &self,
        rules: &'r Rules,
        facts: &Facts<'_>,
        limit: Option<&str>,
    ) -> Result<Vec<&'r str>, StoreError> {
        self.change(rules, 0, facts, limit, None).await
    }

    /// Refuses the key that the facts name until then, or with `None` ends every block of it.
    /// Answers with the limits it was done for.
    ///
    /// # Errors
    ///
    /// When the store could not be told; some limits may have been changed then.
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

    /// Changes every state that the limits have for the key, or forgets them without a change.
    async fn change<'r>(
        &self,
        rules: &'r Rules,
        now_us: u64,
        facts: &Facts<'_>,
        limit: Option<&str>,
        change: Option<Change>,
    ) -> Result<Vec<&'r str>, StoreError> {
        let (mut done, mut work) = (Vec::new(), Work::default());
        for index in rules.indices_named(limit) {
            rules.policy().select_one(index, facts, 0, &mut work.selection);
            for one in rules.policy().selected(&work.selection).filter(|one| !one.missing) {
                for (limit, params) in rules.states(&one) {
                    let params_id = ParamsId::default();
                    let charge = Charge { limit, params, params_id, ..rules.plain_charge(&one) };
                    let adjustment = change.map(|change| Adjustment { charge, change });
                    let call = match &adjustment {
                        Some(adjustment) => StoreCall::Adjust(std::slice::from_ref(adjustment)),
                        None => StoreCall::Reset { limit, key: one.key },
                    };
                    self.store.call(now_us, call, &mut Answers::default()).await?;
                    self.forget_refusal(limit, one.key);
                }
                done.push(rules.name(index));
            }
        }
        Ok(done)
    }
}

impl<S: Store> Gate<S> {
    /// Forgets the refusals of a key, given only the store's name for it.
    pub(crate) fn forget_refusals_of_state(&self, place: &StateKey) {
        if let Some(deny_cache) = &self.deny_cache {
            deny_cache.forget_state(place);
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
    /// The places of the limit with this name, or of all.
    fn indices_named<'a>(&'a self, limit: Option<&'a str>) -> impl Iterator<Item = usize> + 'a {
        let limits = self.policy().limits().iter().enumerate();
        limits.filter(move |(_, one)| limit.is_none_or(|name| *one.name == *name)).map(|(n, _)| n)
    }

    fn name(&self, index: usize) -> &str {
        &self.policy().limits()[index].name
    }

    /// The limit's states for one key: one for each period of its tiers. Each key of `first_of` has
    /// its own.
    fn states(&self, one: &Selected<'_>) -> impl Iterator<Item = (u64, &LimitParams)> {
        let mut seen = BTreeSet::new();
        let (limit, key) = (one.index, one.key_index);
        let is_own = move |variant: &&TierParams| variant.limit == limit && variant.key == key;
        let variants = self.policy().tier_params().iter().filter(is_own);
        variants.filter(move |variant| seen.insert(variant.id)).map(|one| (one.id, &one.params))
    }
}
