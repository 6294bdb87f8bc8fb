//! Ends the charges of a request in two phases, like every call to the store: at once what this
//! process can do alone, the rest later.

use super::in_flight::InFlightCharges;
use crate::buffers::BufferPool;
use crate::engine::Gate;
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

thread_local! {
    /// Buffers for the store's answers, which are not read.
    static ANSWERS: BufferPool<Answers> = const { BufferPool::new() };
}

impl InFlightCharges {
    /// The changes at the end, and the tier of each.
    fn adjustments(&self) -> (SmallVec<[Adjustment<'_>; 1]>, SmallVec<[Option<&str>; 1]>) {
        let adjustments = self.state.charges.iter().filter_map(|held| {
            let charge = held.charge.charge(held.charge.reserved.units_per_cost);
            Some((Adjustment { charge, change: held.change()? }, held.charge.tier.as_deref()))
        });
        adjustments.unzip()
    }

    /// A charge that no limit admits: its refusal counts as a violation and charges nothing.
    fn violation(&self, index: usize) -> Option<Charge<'_>> {
        let held = self.state.charges.get(index).filter(|held| held.is_violation)?;
        Some(held.charge.charge(u64::MAX)).filter(|charge| charge.penalty.is_some())
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
        let (adjustments, tiers) = held.adjustments();
        if !adjustments.is_empty() {
            let rest = self.begin_adjust(now_us, (&adjustments, &tiers), &mut answers);
            calls.extend(rest.map(|rest| (EndCall::Adjust, rest)));
        }
        for index in 0..held.state.charges.len() {
            let Some(charge) = held.violation(index) else { continue };
            answers.clear();
            let request = [Request { charges: &[charge], intent: Intent::Take }];
            let rest = self.store.begin(now_us, StoreCall::Decide(&request), &mut answers);
            calls.extend(rest.map(|rest| (EndCall::Violate(index), rest)));
        }
        answers.clear();
        ANSWERS.with(|pool| pool.put(answers));
        drop((adjustments, tiers));
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
                    let (adjustments, tiers) = held.adjustments();
                    let adjusted = (&*adjustments, &*tiers);
                    self.finish_adjust(now_us, adjusted, rest, &mut answers).await
                }
                EndCall::Violate(index) => {
                    let Some(charge) = held.violation(index) else { continue };
                    let request = [Request { charges: &[charge], intent: Intent::Take }];
                    let call = StoreCall::Decide(&request);
                    let called = self.store.finish(now_us, call, rest, &mut answers).await;
                    called.inspect_err(|error| self.errors.count(error.kind))
                }
            };
        }
    }

    /// Calls the store and counts its error.
    pub(super) async fn call_store(&self, now_us: u64, call: StoreCall<'_>) -> Option<Answers> {
        let mut answers = Answers::default();
        let called = self.store.call(now_us, call, &mut answers).await;
        called.inspect_err(|error| self.errors.count(error.kind)).ok().map(|()| answers)
    }
}
