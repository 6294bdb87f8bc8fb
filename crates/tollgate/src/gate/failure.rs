//! What each limit does when the store could not decide.

use super::{DecisionRequest, FromAnswer, Gate, RequestedLimit};
use crate::{Row, Rules, Source};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::{Algorithm, Intent, LimitParams, Outcome};
use tollgate_policy::limit::{Mode, OnStoreFailure};
use tollgate_policy::policy::Selected;
use tollgate_store::memory::MemoryOptions;
use tollgate_store::{
    Answer, Answers, Charge, MemoryStore, ParamsId, Request, Store, StoreCall, StoreError,
    StoreErrorKind,
};

/// When a client may ask again whom a limit refused because nobody could decide.
const RETRY_AFTER_US: u64 = 1_000_000;
/// What a failure of the store may cost in memory.
const FALLBACK_BYTES_MAX: u64 = 32 << 20;
const FALLBACK_SHARDS: usize = 256;

impl<S: Store> Gate<S> {
    /// Adds rows by each limit's own policy, and says whether the request may pass. Shares are
    /// decided together and consumed only where no other limit refuses, since a request that is
    /// refused takes nothing.
    #[cold]
    pub(super) fn without_store<'r, R: FromAnswer<'r>>(
        &self,
        question: &DecisionRequest<'_, 'r>,
        asked: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
        answers: &mut Answers,
        rows: &mut Vec<R>,
    ) -> bool {
        let DecisionRequest { rules, now_us, .. } = *question;
        let selected = asked.iter().map(|one| one.selected);
        let withheld = selected.clone().any(|one| failure_policy(&one) == OnStoreFailure::Closed);
        let local = selected
            .clone()
            .zip(charges)
            .filter(|(one, _)| matches!(failure_policy(one), OnStoreFailure::Local { .. }));
        let params: SmallVec<[LimitParams; 4]> =
            local.clone().map(|(one, _)| rules.share(&one)).collect();
        let shares = local.zip(&params).map(|((one, charge), params)| match one.missing {
            true => *charge,
            false => Charge { params, params_id: ParamsId::default(), ..*charge },
        });
        let mut shares: SmallVec<[Charge<'_>; 4]> = shares.collect();
        let intent = if withheld { Intent::Peek } else { asked[0].intent };
        answers.clear();
        if !shares.is_empty() {
            let fallback = self.fallback();
            shares
                .iter_mut()
                .for_each(|share| share.params_id = fallback.register_params(share.params));
            let request = Request { charges: &shares, intent };
            fallback.begin(now_us, StoreCall::Decide(&[request]), answers);
        }
        let (admitted, mut decided) = answers.get(0).unwrap_or((true, &[]));
        let row = |one: Selected<'_>| match failure_policy(&one) {
            OnStoreFailure::Open => {
                let outcome = Outcome::admitting(one.params.capacity());
                failure_row(rules, &one, outcome, Source::FailOpen)
            }
            OnStoreFailure::Closed => {
                let outcome = Outcome::refusing(one.params.capacity(), RETRY_AFTER_US);
                failure_row(rules, &one, outcome, Source::FailClosed)
            }
            OnStoreFailure::Local { .. } => {
                let answer = decided.split_off_first();
                let outcome = answer.map_or(Outcome::admitting(0), |answer| answer.outcome);
                failure_row(rules, &one, outcome, Source::LocalFallback)
            }
        };
        for (one, row) in asked.iter().zip(selected.map(row)) {
            let row = R::from(row);
            if one.counts {
                self.count(rules, &one.selected, &row);
            }
            rows.push(row);
        }
        admitted && !withheld
    }

    /// Made when it is first needed.
    pub(crate) fn fallback(&self) -> &MemoryStore {
        let options =
            MemoryOptions::default().max_bytes(FALLBACK_BYTES_MAX).shards(FALLBACK_SHARDS);
        self.fallback.get_or_init(|| MemoryStore::new(options))
    }
}

/// A limit in shadow mode never refuses, so it has nothing to decide without the store.
fn failure_policy(selected: &Selected<'_>) -> OnStoreFailure {
    match selected.limit.mode {
        Mode::Shadow => OnStoreFailure::Open,
        // What misses its key is refused without asking anyone, as the fallback does.
        Mode::Enforce | Mode::Off if selected.missing => OnStoreFailure::Local { nodes: 1 },
        Mode::Enforce | Mode::Off => selected.limit.on_store_failure,
    }
}

fn failure_row<'r>(
    rules: &'r Rules,
    selected: &Selected<'_>,
    outcome: Outcome,
    source: Source,
) -> Row<'r> {
    rules.row_from(selected, &Answer::without_receipt(outcome), source)
}

/// Failures by kind. They come from a store that is slower than any counter, so all threads share
/// these.
#[derive(Debug, Default)]
pub(crate) struct StoreErrorCounters([AtomicU64; StoreErrorKind::ALL.len()]);

impl StoreErrorCounters {
    #[cold]
    pub(crate) fn count(&self, error: &StoreError) {
        let kinds = StoreErrorKind::ALL.iter().zip(&self.0);
        for (_, count) in kinds.filter(|(kind, _)| **kind == error.kind) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<S: Store> Gate<S> {
    /// How often the store failed this gate, by kind.
    pub fn store_errors(&self) -> [(StoreErrorKind, u64); StoreErrorKind::ALL.len()] {
        let counts = self.errors.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        std::array::from_fn(|at| (StoreErrorKind::ALL[at], counts[at]))
    }
}
