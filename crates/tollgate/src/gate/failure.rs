//! Failure policy: how each limit decides when its server fails, and the count of failures.

use super::{DecisionRequest, Gate, RequestedLimit};
use crate::engine::Rules;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::algorithm::Concurrency;
use tollgate_core::{Algorithm, Intent, LimitParams, Outcome};
use tollgate_policy::limit::{Mode, OnStoreFailure};
use tollgate_policy::policy::Selected;
use tollgate_store::memory::MemoryOptions;
use tollgate_store::{
    Adjustment, Answer, Answers, Change, Charge, ChargeMode, MemoryStore, ParamsId, Request, Store,
    StoreCall, StoreErrorKind,
};

/// The wait that a limit with `closed` tells its clients.
const RETRY_AFTER_US: u64 = 1_000_000;
/// The size of the store for shares.
const FALLBACK_BYTES_MAX: u64 = 32 << 20;
const FALLBACK_SHARDS: usize = 256;

/// Params under which the store refuses every cost. They have the longest `ttl`: with a short one,
/// `redate` would move the ends of slots.
static NO_SLOTS: LimitParams = LimitParams::Concurrency(Concurrency::CLOSED);

/// The state of a charge in the fallback store: its id, and the parameters of this node.
pub(crate) type LocalState = (u64, LimitParams);

/// A charge that this node decides without the store.
struct LocalCharge<'a> {
    state: LocalState,
    charge: &'a Charge<'a>,
}

/// Requests that the store admitted and a failure policy refuses: the index of the answer, and the
/// limits.
pub(super) type RefusedByPolicy = SmallVec<[(usize, Range<usize>); 1]>;

/// The indices of charges that the store must refuse, in order.
pub(super) type WithheldCharges = SmallVec<[usize; 2]>;

impl<S: Store> Gate<S> {
    /// Decides the limits whose servers failed by their failure policies, and counts the failure.
    #[cold]
    pub(super) fn apply_failure_policies(
        &self,
        request: &DecisionRequest<'_, '_>,
        answered: &[bool],
        answers: &mut Answers,
    ) -> RefusedByPolicy {
        answers.first_failure().into_iter().for_each(|kind| self.errors.count(kind));
        let mut refused = RefusedByPolicy::new();
        for (index, range) in request.unanswered(answered).enumerate() {
            let shown = request.shown(range.clone());
            let Some((allowed, rows)) = answers.get_mut(index) else { continue };
            if !rows.iter().any(|row| row.failure().is_some()) {
                continue;
            }
            let (limits, charges) = (&request.limits[shown.clone()], &request.charges[shown]);
            let is_admitted = *allowed;
            *allowed = self.decide_failed(request, limits, charges, (is_admitted, rows));
            if is_admitted && !*allowed {
                refused.push((index, range));
            }
        }
        refused
    }

    /// Decides the failed rows of one request, and returns whether the request may pass. Local
    /// limits are decided together, and charged only if no other limit refuses. Their rows keep the
    /// receipts, so that the fallback store can settle the charges.
    fn decide_failed(
        &self,
        request: &DecisionRequest<'_, '_>,
        limits: &[RequestedLimit<'_>],
        charges: &[Charge<'_>],
        (is_admitted, rows): (bool, &mut [Answer]),
    ) -> bool {
        let DecisionRequest { rules, now_us, .. } = *request;
        let failed = limits.iter().zip(charges).zip(&*rows);
        let failed = failed.filter(|(_, row)| row.failure().is_some());
        let failed = failed.map(|((limit, charge), _)| (&limit.selected, charge));
        let is_refused = failed.clone().any(|(one, charge)| is_closed(one, charge));
        let block_left_us = |selected: &Selected<'_>, charge: &Charge<'_>| {
            let left_us = self.known_blocks.left_us(charge, now_us);
            left_us.filter(|_| keeps_blocks(failure_policy(selected)))
        };
        let is_blocked = failed.clone().any(|(one, charge)| block_left_us(one, charge).is_some());
        let local = failed.filter_map(|(one, charge)| {
            local_state(rules, one, charge).map(|state| LocalCharge { state, charge })
        });
        let local: SmallVec<[LocalCharge<'_>; 4]> = local.collect();
        let may_take = is_admitted && !is_refused && !is_blocked;
        let mut answers = Answers::default();
        if !local.is_empty() {
            let fallback = self.fallback();
            let charges = local.iter().map(|LocalCharge { state: (limit, params), charge }| {
                let params_id = fallback.register_params(params);
                Charge { limit: *limit, params, params_id, ..**charge }
            });
            let charges: SmallVec<[Charge<'_>; 4]> = charges.collect();
            let intent = if may_take { limits[0].intent } else { Intent::Peek };
            let request = Request { charges: &charges, intent };
            fallback.begin(now_us, StoreCall::Decide(&[request]), &mut answers);
        }
        let (is_local_admitted, decided) = answers.get(0).unwrap_or((true, &[]));
        let mut decided = decided.iter();
        let failed = limits.iter().zip(charges).zip(rows);
        for ((limit, charge), row) in failed.filter(|(_, row)| row.failure().is_some()) {
            let (selected, capacity) = (&limit.selected, limit.selected.params.capacity());
            let is_closed = is_closed(selected, charge);
            let blocked_us = block_left_us(selected, charge).filter(|_| !is_closed);
            let outcome = match failure_policy(selected) {
                OnStoreFailure::Closed if is_closed => Outcome::refusing(capacity, RETRY_AFTER_US),
                OnStoreFailure::Open | OnStoreFailure::Closed => Outcome::admitting(capacity),
                OnStoreFailure::Local { .. } | OnStoreFailure::LocalRate(_) => {
                    let Some(answer) = decided.next() else { continue };
                    row.receipt = answer.receipt;
                    row.blocked = answer.blocked;
                    answer.outcome
                }
            };
            row.blocked |= blocked_us.is_some();
            row.outcome = blocked_us.map_or(outcome, |left_us| outcome.in_block(left_us));
        }
        may_take && is_local_admitted
    }

    /// Withholds slots of keys of which this node has lapsed slots, under limits that are closed
    /// without their store. Returns the indices of the charges.
    #[cold]
    pub(super) fn withhold_lapsed(&self, request: &mut DecisionRequest<'_, '_>) -> WithheldCharges {
        let now_us = request.now_us;
        let asked = request.limits.iter().zip(&mut request.charges).enumerate();
        let mut withheld = WithheldCharges::new();
        for (index, (limit, charge)) in asked {
            let takes_slot = matches!(charge.params, LimitParams::Concurrency(_))
                && limit.intent == Intent::Take
                && charge.mode == ChargeMode::Enforce;
            if takes_slot
                && is_closed(&limit.selected, charge)
                && self.slots.has_lapsed(now_us, charge)
            {
                // The store decides the other limits of the request. It must know that this one
                // refuses, and must not count the refusal as a violation.
                let (params, params_id) = (&NO_SLOTS, ParamsId::default());
                *charge = Charge { params, params_id, penalty: None, ..*charge };
                withheld.push(index);
            }
        }
        withheld
    }

    /// Gives back the store's charges for requests that a failure policy refuses.
    pub(super) async fn give_back_refused(
        &self,
        request: &DecisionRequest<'_, '_>,
        refused: RefusedByPolicy,
        answers: &mut Answers,
    ) {
        for (index, limits) in refused {
            let Some((_, rows)) = answers.get_mut(index) else { continue };
            let charged = request.charges[limits].iter().zip(rows);
            let charged = charged.filter(|(_, row)| row.failure().is_none());
            let charged = charged.filter_map(|(charge, row)| {
                let receipt = row.receipt.take()?;
                let (units, charged_params) = (receipt.cost, *charge.params);
                let change = Change::GiveBack { units, receipt, charged_params };
                Some((Adjustment { charge: *charge, change }, row))
            });
            let (adjustments, rows): (Vec<_>, Vec<_>) = charged.unzip();
            if adjustments.is_empty() {
                continue;
            }
            let (call, mut now) = (StoreCall::Adjust(&adjustments), Answers::default());
            match self.store.call(request.now_us, call, &mut now).await {
                Ok(()) => {
                    let now = now.get(0).map_or(&[][..], |(_, now)| now);
                    for (row, now) in rows.into_iter().zip(now) {
                        let limit = std::mem::replace(&mut row.outcome, now.outcome).limit;
                        row.outcome.limit = limit;
                    }
                }
                Err(error) => self.errors.count(error.kind),
            }
            self.forget_refusals(&adjustments);
        }
    }

    /// Begins a call to the store that holds the charges: the fallback store if it decided them.
    pub(crate) fn begin_call(
        &self,
        now_us: u64,
        call: StoreCall<'_>,
        is_local: bool,
        answers: &mut Answers,
    ) -> Option<S::Undecided> {
        if is_local {
            self.call_fallback(now_us, call, answers);
            return None;
        }
        self.store.begin(now_us, call, answers)
    }

    // Kept apart: the memory store's calls are inlined, and most charges are not local.
    #[cold]
    fn call_fallback(&self, now_us: u64, call: StoreCall<'_>, answers: &mut Answers) {
        self.fallback().begin(now_us, call, answers);
    }

    /// The store for shares, made when it is first needed.
    pub(crate) fn fallback(&self) -> &MemoryStore {
        let options =
            MemoryOptions::default().max_bytes(FALLBACK_BYTES_MAX).shards(FALLBACK_SHARDS);
        self.fallback.get_or_init(|| MemoryStore::new(options))
    }
}

/// The state by which this node decides the charge without the store; `None` unless `local`
/// applies.
pub(crate) fn local_state(
    rules: &Rules,
    selected: &Selected<'_>,
    charge: &Charge<'_>,
) -> Option<LocalState> {
    if !is_local(failure_policy(selected)) {
        return None;
    }
    let (limit, params) = rules.local(selected);
    let params = match (params, charge.params) {
        _ if selected.missing => *charge.params,
        // The slots of a reservation last as long as the reservation.
        (LimitParams::Concurrency(slots), LimitParams::Concurrency(charged)) => {
            LimitParams::Concurrency(slots.with_ttl(charged.ttl_us()).unwrap_or(slots))
        }
        (params, _) => params,
    };
    Some((limit, params))
}

/// Whether this node decides by itself while the store fails.
const fn is_local(policy: OnStoreFailure) -> bool {
    matches!(policy, OnStoreFailure::Local { .. } | OnStoreFailure::LocalRate(_))
}

/// Whether the failure policy refuses the charge. A charge of no units consumes nothing, so only a
/// block refuses it.
fn is_closed(selected: &Selected<'_>, charge: &Charge<'_>) -> bool {
    failure_policy(selected) == OnStoreFailure::Closed && charge.cost > 0
}

/// Whether blocks that this node knows hold while the store fails.
pub(super) fn keeps_blocks(policy: OnStoreFailure) -> bool {
    policy != OnStoreFailure::Open
}

/// The failure policy that applies. A shadow limit never refuses, so it is open.
pub(crate) fn failure_policy(selected: &Selected<'_>) -> OnStoreFailure {
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
    pub(crate) fn count(&self, kind: StoreErrorKind) {
        if let Some(index) = StoreErrorKind::ALL.iter().position(|one| *one == kind) {
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
