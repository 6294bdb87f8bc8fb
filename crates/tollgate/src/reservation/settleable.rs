//! The charges of an admitted request that can be settled later.

use super::in_flight::KeyedCharge;
use super::record::ReservedCharge;
use crate::engine::Rules;
use crate::gate::{DecisionRequest, LocalState, local_state};
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate_policy::limit::CostRule;
use tollgate_policy::policy::Selected;
use tollgate_store::{Answer, Answers, Charge};

/// A charge that the store made, or the fallback store.
pub(super) struct SettleableCharge<'q, 'a> {
    pub(super) selected: &'q Selected<'a>,
    pub(super) charge: &'q Charge<'a>,
    pub(super) answer: &'q Answer,
    /// The state that was charged, if it is in the fallback store.
    pub(super) local: Option<LocalState>,
}

/// The charges of an admitted request that can be settled. A limit with a missing key has none, nor
/// has a limit that admits without the store.
pub(super) fn settleable_charges<'q, 'a>(
    request: &'q DecisionRequest<'a, '_>,
    answers: &'q Answers,
) -> impl Iterator<Item = SettleableCharge<'q, 'a>> {
    let decided = answers.get(0).map_or(&[][..], |(_, decided)| decided);
    let limits = request.limits.iter().zip(&request.charges);
    limits.zip(decided).filter_map(|((limit, charge), answer)| {
        let selected = &limit.selected;
        if selected.missing {
            return None;
        }
        let local = match answer.failure() {
            Some(_) => Some(local_state(request.rules, selected, charge)?),
            None => None,
        };
        Some(SettleableCharge { selected, charge, answer, local })
    })
}

impl SettleableCharge<'_, '_> {
    pub(super) fn reserved(&self, rules: &Rules) -> ReservedCharge {
        let Self { selected, charge, answer, local } = self;
        ReservedCharge {
            limit: Arc::clone(rules.limit(selected.index)),
            params: local.map_or(*charge.params, |(_, params)| params),
            units_per_cost: match selected.limit.cost {
                CostRule::Estimate { .. } => 1,
                CostRule::Fixed(_) | CostRule::Attribute { .. } | CostRule::ByMatch(_) => {
                    selected.cost
                }
            },
            taken: answer.outcome.admitted,
            charged: if answer.outcome.admitted { charge.cost } else { 0 },
            receipt: answer.receipt,
        }
    }

    /// The charge with its key.
    pub(super) fn keyed(&self, rules: &Rules, reserved: ReservedCharge) -> KeyedCharge {
        let Self { selected, charge, .. } = self;
        KeyedCharge {
            reserved,
            state_id: charge.limit,
            local_id: self.local.map(|(id, _)| id),
            tier: rules.tier_of(selected).cloned(),
            key: SmallVec::from_slice(charge.key),
        }
    }
}
