//! Ends the charges of a request in two phases, like every call to the store. The first phase does
//! the part that this process can do alone.

use super::in_flight::InFlightCharges;
use crate::buffers::BufferPool;
use crate::engine::Gate;
use crate::gate::AdjustedCharge;
use smallvec::SmallVec;
use tollgate_core::Intent;
use tollgate_store::{Adjustment, Answers, Charge, Request, Store, StoreCall};

/// Ended charges that the store does not know of yet. [`Gate::finish_later`] reports them.
#[derive(Debug)]
#[must_use = "the store hears of the end in `Gate::finish_later`"]
pub struct UnfinishedCharges<R> {
    held: InFlightCharges,
    now_us: u64,
    calls: SmallVec<[(EndCall, R); 1]>,
}

/// A call to the store at the end of a request.
#[derive(Clone, Copy, Debug)]
enum EndCall {
    /// The adjustments of all charges.
    Adjust,
    /// The violation that the response counts, for the charge at this index.
    Violate(usize),
}

/// Changes, and the charges that they change.
type Adjustments<'a> = (SmallVec<[Adjustment<'a>; 1]>, SmallVec<[AdjustedCharge<'a>; 1]>);

thread_local! {
    /// Buffers for the store's answers, which are not read.
    static ANSWERS: BufferPool<Answers> = const { BufferPool::new() };
}

impl InFlightCharges {
    /// The changes at the end of the charges that the store made, or the fallback store.
    fn adjustments(&self, is_local: bool) -> Adjustments<'_> {
        let charges = self.state.charges.iter().filter(|held| held.charge.is_local() == is_local);
        let adjustments = charges.filter_map(|held| {
            let charge = held.charge.charge(held.charge.reserved.units_per_cost);
            Some((Adjustment { charge, change: held.change()? }, held.charge.adjusted()))
        });
        adjustments.unzip()
    }

    /// A charge that no limit admits: its refusal counts as a violation and charges nothing. The
    /// fallback store counts it if it made the charge.
    fn violation(&self, index: usize) -> Option<(Charge<'_>, bool)> {
        let held = self.state.charges.get(index).filter(|held| held.is_violation)?;
        let charge = held.charge.charge(u64::MAX);
        charge.penalty.is_some().then_some((charge, held.charge.is_local()))
    }
}

impl<S: Store> Gate<S> {
    /// Ends the charges of a request: frees slots, gives back unused places in a queue, settles
    /// costs, and counts violations.
    ///
    /// If the store fails, estimates stay, and slots are freed after their `ttl`.
    pub async fn finish(&self, now_us: u64, held: InFlightCharges) {
        if let Some(unfinished) = self.finish_now(|| now_us, held) {
            self.finish_later(unfinished).await;
        }
    }

    /// Does the part of [`finish`](Self::finish) that needs no other process. Returns the rest.
    #[inline]
    pub fn finish_now(
        &self,
        clock: impl Fn() -> u64,
        mut held: InFlightCharges,
    ) -> Option<UnfinishedCharges<S::Undecided>> {
        // The slot of this node does not wait for the store.
        if let Some(shed) = &mut held.state.shed {
            shed.release(&clock);
            held.state.shed = None;
        }
        if held.state.charges.is_empty() {
            held.recycle();
            return None;
        }
        self.finish_charges(clock(), held)
    }

    #[inline(never)]
    fn finish_charges(
        &self,
        now_us: u64,
        held: InFlightCharges,
    ) -> Option<UnfinishedCharges<S::Undecided>> {
        let mut answers = ANSWERS.with(BufferPool::take);
        let mut calls = SmallVec::new();
        let is_any_local = held.state.charges.iter().any(|one| one.charge.is_local());
        let stores: &[bool] = if is_any_local { &[false, true] } else { &[false] };
        for &is_local in stores {
            let (adjustments, adjusted) = held.adjustments(is_local);
            if !adjustments.is_empty() {
                let all = (&*adjustments, &*adjusted);
                let rest = self.begin_adjust(now_us, all, is_local, &mut answers);
                calls.extend(rest.map(|rest| (EndCall::Adjust, rest)));
            }
        }
        for index in 0..held.state.charges.len() {
            let Some((charge, is_local)) = held.violation(index) else { continue };
            answers.clear();
            let request = [Request { charges: &[charge], intent: Intent::Take }];
            let call = StoreCall::Decide(&request);
            let rest = self.begin_call(now_us, call, is_local, &mut answers);
            calls.extend(rest.map(|rest| (EndCall::Violate(index), rest)));
        }
        answers.clear();
        ANSWERS.with(|pool| pool.put(answers));
        if calls.is_empty() {
            held.recycle();
            return None;
        }
        Some(UnfinishedCharges { held, now_us, calls })
    }

    /// Does the rest after [`finish_now`](Self::finish_now).
    pub async fn finish_later(&self, unfinished: UnfinishedCharges<S::Undecided>) {
        let UnfinishedCharges { held, now_us, calls } = unfinished;
        for (call, rest) in calls {
            let mut answers = Answers::default();
            // Errors are counted; nothing else can be done about them.
            let _ = match call {
                EndCall::Adjust => {
                    let (adjustments, adjusted) = held.adjustments(false);
                    let all = (&*adjustments, &*adjusted);
                    self.finish_adjust(now_us, all, rest, &mut answers).await
                }
                EndCall::Violate(index) => {
                    let Some((charge, _)) = held.violation(index) else { continue };
                    let request = [Request { charges: &[charge], intent: Intent::Take }];
                    let call = StoreCall::Decide(&request);
                    let called = self.store.finish(now_us, call, rest, &mut answers).await;
                    called.inspect_err(|error| self.errors.count(error.kind))
                }
            };
        }
    }

    /// Calls the store that [holds](Self::begin_call) a charge, and counts its error.
    pub(super) async fn call_holder(
        &self,
        now_us: u64,
        call: StoreCall<'_>,
        is_local: bool,
    ) -> Option<Answers> {
        let mut answers = Answers::default();
        if let Some(rest) = self.begin_call(now_us, call, is_local, &mut answers) {
            let called = self.store.finish(now_us, call, rest, &mut answers).await;
            called.inspect_err(|error| self.errors.count(error.kind)).ok()?;
        }
        Some(answers)
    }
}
