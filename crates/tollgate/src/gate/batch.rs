//! Batches of checks by one limit each, such as pipelined Redis commands.

use super::{DecisionRequest, FromAnswer, RequestedLimit};
use crate::engine::{Gate, GateBuffers, Row, Rules, Source, Verdict};
use crate::rules::outcome;
use tollgate_core::{Intent, LimitParams, Outcome};
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::{Selected, Selection};
use tollgate_store::{Answer, Charge, ParamsId, Store, StoreReply};

/// The state id of [`SingleCheck::Inline`]. No file can give a limit this id, so inline keys never
/// meet those of a policy. The id is written to Redis, so it never changes.
const INLINE_STATE_ID: u64 = 1_193_473_131_922_152_854;

/// A request that one limit decides.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SingleCheck<'a> {
    /// A limit of the policy.
    Limit {
        /// The result of [`Policy::select_one`](tollgate_policy::policy::Policy::select_one), and
        /// the candidate of the limit. If it is empty, no limit applies.
        selection: &'a Selection,
        /// Whether admission consumes.
        intent: Intent,
    },
    /// A limit that comes with the request. All inline checks share their keys, regardless of
    /// their parameters.
    Inline {
        /// Any bytes.
        key: &'a [u8],
        /// The limit.
        params: &'a LimitParams,
        /// The id from [`Store::register_params`], for parameters that are used often.
        params_id: ParamsId,
        /// Units to take; zero is a peek.
        cost: u64,
    },
}

/// The answer to a [`SingleCheck`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SingleVerdict {
    /// Whether the request may pass. A shadow limit never refuses.
    pub allowed: bool,
    /// The figures of the limit.
    pub outcome: Outcome,
    /// The source of the decision; [`Source::None`] if no limit applied.
    pub source: Source,
}

impl SingleVerdict {
    /// The verdict if no limit applies.
    const NOTHING: Self =
        Self { allowed: true, outcome: Outcome::admitting(0), source: Source::None };

    /// The verdict on the request of this [check](SingleCheck::selected).
    pub fn verdict<'a>(&self, selected: &Selected<'a>) -> Verdict<'a> {
        let Selected { limit, params, .. } = selected;
        Verdict::of_row(Row::new(limit, params, self.outcome, self.source, 0))
    }
}

impl From<Row<'_>> for SingleVerdict {
    fn from(row: Row<'_>) -> Self {
        Self { allowed: !row.refuses(), outcome: row.outcome, source: row.source }
    }
}

impl<'r> FromAnswer<'r> for SingleVerdict {
    #[inline]
    fn from_answer(rules: &'r Rules, selected: &Selected<'_>, answer: &Answer) -> Self {
        let (outcome, source) = (outcome(selected, answer), rules.source(selected, answer));
        let allowed = outcome.admitted || selected.limit.mode != Mode::Enforce;
        Self { allowed, outcome, source }
    }

    #[inline]
    fn counted(&self) -> (Source, bool, bool) {
        (self.source, self.outcome.admitted, !self.allowed)
    }

    #[inline]
    fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl<S: Store> Gate<S> {
    /// Decides each of `checks` by itself, in order, with one call to the store. The verdicts are
    /// in [`GateBuffers::verdicts`].
    pub fn check_batch<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        checks: impl IntoIterator<Item = SingleCheck<'a>>,
        gate_buffers: &'a mut GateBuffers,
    ) -> StoreReply<'a, (), S::Undecided> {
        let GateBuffers { answers, verdicts, decision_buffers, .. } = gate_buffers;
        let mut request = DecisionRequest::new(rules, now_us, decision_buffers);
        let mut count = 0;
        for check in checks {
            check.push_to(&mut request, count);
            count += 1;
        }
        request.is_one_request = count == 1;
        let mut rows = std::mem::take(verdicts);
        rows.clear();
        self.decide(request, (answers, decision_buffers), rows, move |request, decided, _| {
            *verdicts = if decided.rows.len() == count && decided.is_in_order() {
                decided.rows
            } else {
                let mut all = vec![SingleVerdict::NOTHING; count];
                for (index, row) in decided.rows.iter().enumerate() {
                    all[request.limits[decided.limit_of_row(index)].batch_index] = *row;
                }
                all
            };
        })
    }
}

impl<'a> SingleCheck<'a> {
    /// The limit, its parameters and its key; `None` if no limit applies.
    pub fn selected(&self, rules: &'a Rules) -> Option<Selected<'a>> {
        match *self {
            Self::Limit { selection, .. } => rules.policy().selected(selection).next(),
            Self::Inline { key, params, cost, .. } => Some(select_inline(rules, key, params, cost)),
        }
    }

    /// Adds the limit and its candidate, if a limit applies.
    #[inline]
    fn push_to<'r: 'a>(self, request: &mut DecisionRequest<'a, 'r>, batch_index: usize) {
        let (rules, first) = (request.rules, request.limits.len());
        match self {
            Self::Limit { selection, intent } => {
                for selected in rules.policy().selected(selection) {
                    let limit = RequestedLimit::new(selected, intent);
                    let charge = rules.charge(&selected);
                    request.push(RequestedLimit { batch_index, ..limit }, charge);
                }
                if request.limits.len() > first + 1 {
                    request.prepare_candidates(first);
                }
            }
            Self::Inline { key, params, params_id, cost } => {
                let selected = select_inline(rules, key, params, cost);
                let charge = Charge { params_id, ..rules.plain_charge(&selected) };
                // A peek is not counted.
                let (intent, counts) = (Intent::Take, cost > 0);
                request.push(RequestedLimit { selected, intent, counts, batch_index }, charge);
            }
        }
    }
}

/// An inline limit and its key.
#[inline]
fn select_inline<'a>(
    rules: &'a Rules,
    key: &'a [u8],
    params: &'a LimitParams,
    cost: u64,
) -> Selected<'a> {
    Selected::inline(rules.throttle(), params, INLINE_STATE_ID, key, cost)
}

#[cfg(test)]
mod tests {
    use super::INLINE_STATE_ID;
    use tollgate_core::state_id;

    #[test]
    fn no_file_can_give_a_limit_this_id() {
        // A name is printable.
        assert_eq!(state_id("\0own", &[], "gcra", 0), INLINE_STATE_ID);
    }
}
