//! Several requests at once, each of them by one limit: commands that come in rows on a connection.

use super::{DecisionRequest, FromAnswer, RequestedLimit};
use crate::rules::outcome;
use crate::{Gate, Row, Rules, Source, Work};
use tollgate_core::{Intent, LimitParams, Outcome};
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::{Selected, Selection};
use tollgate_store::{Answer, Charge, ParamsId, Store, StoreReply};

/// Names the state of [`SingleCheck::Inline`]. No file can give a limit its name, so its keys never
/// meet those of a policy. It is written to Redis, so it never changes.
const INLINE_STATE_ID: u64 = 1_193_473_131_922_152_854;

/// A request that one limit decides.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SingleCheck<'a> {
    /// A limit of the policy, as
    /// [`Policy::select_one`](tollgate_policy::policy::Policy::select_one) found it. Where it found
    /// none, nothing applies.
    Limit {
        /// What was found.
        selection: &'a Selection,
        /// Whether admission consumes.
        intent: Intent,
    },
    /// A limit that comes with the request, for a key that belongs to nobody else. All such
    /// requests share their keys, whatever the numbers.
    Inline {
        /// Any bytes.
        key: &'a [u8],
        /// What is allowed.
        params: &'a LimitParams,
        /// What [`Store::register_params`] answered for these numbers, if they are used often.
        params_id: ParamsId,
        /// Units to take; zero only looks.
        cost: u64,
    },
}

/// The answer to a [`SingleCheck`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SingleVerdict {
    /// Whether the request may pass. A limit in shadow mode lets pass what it refuses.
    pub allowed: bool,
    /// What the limit said.
    pub outcome: Outcome,
    /// Where it came from; [`Source::None`] when no limit applied.
    pub source: Source,
}

impl SingleVerdict {
    /// Where no limit applies.
    const NOTHING: Self =
        Self { allowed: true, outcome: Outcome::admitting(0), source: Source::None };
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
}

impl<S: Store> Gate<S> {
    /// Decides each of `checks` by itself, in order, and asks the store once for all of them. The
    /// answers are [`Work::verdicts`].
    pub fn check_batch<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        now_us: u64,
        checks: impl IntoIterator<Item = SingleCheck<'a>>,
        work: &'a mut Work,
    ) -> StoreReply<'a, (), S::Undecided> {
        let Work { answers, verdicts: decided, decision_buffers: memory, .. } = work;
        let mut question = DecisionRequest::new(rules, now_us, memory);
        question.is_one_request = false;
        let mut count = 0;
        for check in checks {
            if let Some((asked, charge)) = check.to_request(rules, count) {
                question.limits.push(asked);
                question.charges.push(charge);
            }
            count += 1;
        }
        let mut rows = std::mem::take(decided);
        rows.clear();
        self.decide(question, (answers, memory), rows, move |question, told, _| {
            *decided = if told.rows.len() == count && told.is_in_order() {
                told.rows
            } else {
                let mut all = vec![SingleVerdict::NOTHING; count];
                for (place, row) in told.rows.iter().enumerate() {
                    all[question.limits[told.limit_of_row(place)].batch_index] = *row;
                }
                all
            };
        })
    }
}

impl<'a> SingleCheck<'a> {
    /// What is asked; `None` where no limit applies.
    #[inline]
    fn to_request<'r: 'a>(
        &self,
        rules: &'r Rules,
        place: usize,
    ) -> Option<(RequestedLimit<'a>, Charge<'a>)> {
        match *self {
            Self::Limit { selection, intent } => {
                let selected = rules.policy().selected(selection).next()?;
                let counts = intent == Intent::Take;
                Some((
                    RequestedLimit { selected, intent, counts, batch_index: place },
                    rules.charge(&selected),
                ))
            }
            Self::Inline { key, params, params_id, cost } => {
                let selected =
                    Selected::inline(rules.throttle(), params, INLINE_STATE_ID, key, cost);
                let charge = Charge { params_id, ..rules.plain_charge(&selected) };
                // As everywhere, looking counts nothing.
                let asked = RequestedLimit {
                    selected,
                    intent: Intent::Take,
                    counts: cost > 0,
                    batch_index: place,
                };
                Some((asked, charge))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::INLINE_STATE_ID;
    use tollgate_policy::state_id;

    #[test]
    fn its_name_is_none_that_a_file_can_give() {
        // A name is printable.
        assert_eq!(state_id("\0own", &[], "gcra", 0), INLINE_STATE_ID);
    }
}
