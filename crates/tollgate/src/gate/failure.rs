//! Failure policy: how each limit decides when the store fails, and the count of failures.

use super::{DecisionRequest, FromAnswer, Gate, RequestedLimit};
use crate::engine::Source;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::{Algorithm, Intent, LimitParams, Outcome};
use tollgate_policy::limit::{Mode, OnStoreFailure};
use tollgate_policy::policy::Selected;
use tollgate_store::memory::MemoryOptions;
use tollgate_store::{
    Answer, Answers, Charge, MemoryStore, Request, Store, StoreCall, StoreError, StoreErrorKind,
};

/// The wait that a limit with `closed` tells its clients.
const RETRY_AFTER_US: u64 = 1_000_000;
/// The size of the store for shares.
const FALLBACK_BYTES_MAX: u64 = 32 << 20;
const FALLBACK_SHARDS: usize = 256;

impl<S: Store> Gate<S> {
    /// Adds rows by each limit's failure policy, and returns whether the request may pass. Local
    /// limits are decided together, and charged only if no other limit refuses.
    #[cold]
    pub(super) fn without_store<'r, R: FromAnswer<'r>>(
        &self,
        request: &DecisionRequest<'_, 'r>,
        limits: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
        answers: &mut Answers,
        rows: &mut Vec<R>,
    ) -> bool {
        let DecisionRequest { rules, now_us, .. } = *request;
        let selected = limits.iter().map(|limit| limit.selected);
        let is_closed = selected.clone().any(|one| failure_policy(&one) == OnStoreFailure::Closed);
        let is_local = |one: &Selected<'_>| {
            use OnStoreFailure::{Local, LocalRate};
            matches!(failure_policy(one), Local { .. } | LocalRate(_))
        };
        let local = selected.clone().zip(charges).filter(|(one, _)| is_local(one));
        let params: SmallVec<[(u64, LimitParams); 4]> =
            local.clone().map(|(one, _)| rules.local(&one)).collect();
        answers.clear();
        if !params.is_empty() {
            let fallback = self.fallback();
            let charges = local.zip(&params).map(|((one, charge), (limit, params))| {
                let params = if one.missing { charge.params } else { params };
                let params_id = fallback.register_params(params);
                Charge { limit: *limit, params, params_id, ..*charge }
            });
            let charges: SmallVec<[Charge<'_>; 4]> = charges.collect();
            let intent = if is_closed { Intent::Peek } else { limits[0].intent };
            let request = Request { charges: &charges, intent };
            fallback.begin(now_us, StoreCall::Decide(&[request]), answers);
        }
        let (admitted, mut decided) = answers.get(0).unwrap_or((true, &[]));
        let allowed = admitted && !is_closed;
        let before = rows.len();
        for limit in limits {
            let capacity = limit.selected.params.capacity();
            let (outcome, source) = match failure_policy(&limit.selected) {
                OnStoreFailure::Open => (Outcome::admitting(capacity), Source::FailOpen),
                OnStoreFailure::Closed => {
                    (Outcome::refusing(capacity, RETRY_AFTER_US), Source::FailClosed)
                }
                OnStoreFailure::Local { .. } | OnStoreFailure::LocalRate(_) => {
                    let answer = decided.split_off_first();
                    let outcome = answer.map_or(Outcome::admitting(0), |answer| answer.outcome);
                    (outcome, Source::LocalFallback)
                }
            };
            let answer = Answer::without_receipt(outcome);
            rows.push(R::from(rules.row_from(&limit.selected, &answer, source)));
        }
        let counted = limits.iter().zip(charges).zip(&rows[before..]);
        let counted = counted.map(|((limit, charge), row)| (limit, charge, row));
        self.count(request, counted, allowed);
        allowed
    }

    /// The store for shares, made when it is first needed.
    pub(crate) fn fallback(&self) -> &MemoryStore {
        let options =
            MemoryOptions::default().max_bytes(FALLBACK_BYTES_MAX).shards(FALLBACK_SHARDS);
        self.fallback.get_or_init(|| MemoryStore::new(options))
    }
}

/// The failure policy that applies. A shadow limit never refuses, so it is open.
fn failure_policy(selected: &Selected<'_>) -> OnStoreFailure {
    match selected.limit.mode {
        Mode::Shadow => OnStoreFailure::Open,
        // A limit whose key is missing refuses by `refuse_all`, which needs no shared state.
        Mode::Enforce | Mode::Off if selected.missing => OnStoreFailure::Local { nodes: 1 },
        Mode::Enforce | Mode::Off => selected.limit.on_store_failure,
    }
}

/// Store failures by kind. All threads share these: a failing store is slower than the contention.
#[derive(Debug, Default)]
pub(crate) struct StoreErrorCounters([AtomicU64; StoreErrorKind::ALL.len()]);

impl StoreErrorCounters {
    #[cold]
    pub(crate) fn count(&self, error: &StoreError) {
        if let Some(index) = StoreErrorKind::ALL.iter().position(|kind| *kind == error.kind) {
            self.0[index].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<S: Store> Gate<S> {
    /// The store failures that this gate has seen, by kind.
    pub fn store_errors(&self) -> [(StoreErrorKind, u64); StoreErrorKind::ALL.len()] {
        let counts = self.errors.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        std::array::from_fn(|at| (StoreErrorKind::ALL[at], counts[at]))
    }
}
