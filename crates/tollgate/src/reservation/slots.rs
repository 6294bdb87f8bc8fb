//! Slot renewal, for requests that run longer than the `ttl` of their slot.
//!
//! A slot is freed after its `ttl`, so that the slots of a dead process are not lost. While a
//! request runs, its slot is renewed: the node takes another slot, even without room, and then
//! gives back the old one. So the request holds a slot at every instant.

use super::in_flight::KeyedCharge;
use crate::engine::Gate;
use slab::Slab;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tollgate_core::Receipt;
use tollgate_store::{Adjustment, Change, Store, StoreCall};

/// Renewals per `ttl`, so that the store may fail for a while.
const RENEWALS_PER_TTL: u64 = 3;
/// Free entries that are kept, at most.
const KEPT_MAX: usize = 4_096;

/// The slots of requests in flight.
#[derive(Debug, Default)]
pub(crate) struct SlotRegistry {
    /// A slot stays while its request or a renewal refers to it.
    slots: Mutex<Slab<HeldSlot>>,
}

/// A slot in use.
#[derive(Clone, Debug)]
pub(super) struct HeldSlot {
    charge: Arc<KeyedCharge>,
    receipt: Receipt,
    ttl_us: u64,
    /// The time at which the slot must be renewed.
    due_us: u64,
    /// Whether a renewal is calling the store.
    is_renewing: bool,
    request: RequestState,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RequestState {
    Running,
    /// The request has ended and gives back the slot. Its guard still refers to the entry.
    Ended,
    /// The guard of the request is gone, so the renewal in progress removes the entry.
    Dropped,
}

/// A request's hold on a slot. Dropping it ends the renewal.
#[derive(Debug)]
pub(super) struct SlotGuard {
    slots: Arc<SlotRegistry>,
    index: usize,
}

impl SlotRegistry {
    fn lock(&self) -> MutexGuard<'_, Slab<HeldSlot>> {
        crate::sync::lock(&self.slots)
    }

    pub(super) fn register(self: &Arc<Self>, slot: HeldSlot) -> SlotGuard {
        let index = self.lock().insert(slot);
        SlotGuard { slots: self.clone(), index }
    }

    /// Takes a slot that is due, and marks it as being renewed.
    fn take_due(&self, now_us: u64) -> Option<(RenewalGuard<'_>, HeldSlot)> {
        let mut slots = self.lock();
        let mut all = slots.iter_mut();
        let (index, slot) = all.find(|(_, slot)| {
            slot.due_us <= now_us && !slot.is_renewing && slot.request == RequestState::Running
        })?;
        slot.is_renewing = true;
        Some((RenewalGuard { slots: self, index }, slot.clone()))
    }

    /// The time until the next slot is due, at most the renewal interval; `None` without slots.
    fn next_due_in_us(&self, now_us: u64) -> Option<u64> {
        let slots = self.lock();
        let next_us = |(_, slot): (_, &HeldSlot)| {
            slot.due_us.saturating_sub(now_us).min(slot.ttl_us / RENEWALS_PER_TTL)
        };
        let running = slots.iter().filter(|(_, slot)| slot.request == RequestState::Running);
        running.map(next_us).min()
    }
}

/// A renewal in progress. Dropping it without `complete` leaves the slot unchanged.
struct RenewalGuard<'a> {
    slots: &'a SlotRegistry,
    index: usize,
}

impl RenewalGuard<'_> {
    /// Ends the renewal; `None`: the store failed. Returns the slot to give back: the old one, or
    /// the new one if the request has ended.
    fn complete(self, now_us: u64, renewed: Option<Receipt>) -> Option<Receipt> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(self.index)?;
        let Some(renewed) = renewed else {
            // A failed call may have taken a slot that is never given back, so the next call waits.
            slot.due_us = now_us.saturating_add(slot.ttl_us / RENEWALS_PER_TTL / 2);
            return None;
        };
        // A request that has ended gives back the old slot itself, and the `ttl` frees that of one
        // that was dropped.
        if slot.request != RequestState::Running {
            return Some(renewed);
        }
        slot.due_us = HeldSlot::due_us(now_us, slot.ttl_us);
        Some(std::mem::replace(&mut slot.receipt, renewed))
    }
}

impl Drop for RenewalGuard<'_> {
    fn drop(&mut self) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(self.index) else { return };
        slot.is_renewing = false;
        if slot.request == RequestState::Dropped {
            remove(&mut slots, self.index);
        }
    }
}

/// Removes an entry. A search visits free entries too, so the room of a peak is given back.
fn remove(slots: &mut Slab<HeldSlot>, index: usize) {
    slots.try_remove(index);
    if slots.is_empty() && slots.capacity() > KEPT_MAX {
        *slots = Slab::new();
    }
}

impl HeldSlot {
    pub(super) fn new(
        charge: Arc<KeyedCharge>,
        receipt: Receipt,
        ttl_us: u64,
        now_us: u64,
    ) -> Self {
        let due_us = Self::due_us(now_us, ttl_us);
        Self { charge, receipt, ttl_us, due_us, is_renewing: false, request: RequestState::Running }
    }

    fn due_us(now_us: u64, ttl_us: u64) -> u64 {
        now_us.saturating_add(ttl_us / RENEWALS_PER_TTL)
    }

    fn adjustment(&self, change: Change) -> [Adjustment<'_>; 1] {
        [Adjustment { charge: self.charge.charge(self.receipt.cost), change }]
    }
}

impl SlotGuard {
    /// Ends the slot and returns the receipt to give back; repeated calls return the same. A
    /// renewal in progress gives back its own slot.
    pub(super) fn end(&self) -> Option<Receipt> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(self.index)?;
        slot.request = RequestState::Ended;
        Some(slot.receipt)
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut slots = self.slots.lock();
        match slots.get_mut(self.index) {
            // The renewal removes it.
            Some(slot) if slot.is_renewing => slot.request = RequestState::Dropped,
            _ => remove(&mut slots, self.index),
        }
    }
}

impl<S: Store> Gate<S> {
    /// Renews the slots of [`InFlightCharges`](crate::engine::InFlightCharges) that have used a
    /// third of their `ttl`. Returns the time until the next call; `None` if no request holds a
    /// slot. Without renewal, a request loses its slot after the `ttl`.
    ///
    /// If the store fails, the slot is renewed a little later.
    pub async fn renew_slots(&self, now_us: u64) -> Option<Duration> {
        while let Some((renewal, slot)) = self.slots.take_due(now_us) {
            let taken = slot.adjustment(Change::Owe { units: slot.receipt.cost });
            let is_local = slot.charge.is_local();
            let answers = self.call_holder(now_us, StoreCall::Adjust(&taken), is_local).await;
            let renewed = answers.and_then(|answers| answers.get(0)?.1.first()?.receipt);
            let Some(receipt) = renewal.complete(now_us, renewed) else { continue };
            let (units, charged_params) = (receipt.cost, slot.charge.reserved.params);
            let given = slot.adjustment(Change::GiveBack { units, receipt, charged_params });
            self.call_holder(now_us, StoreCall::Adjust(&given), is_local).await;
        }
        let due_us = self.slots.next_due_in_us(now_us)?;
        Some(Duration::from_micros(due_us).clamp(WAIT_MIN, WAIT_MAX))
    }
}

/// The shortest wait, also after a failure of the store.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// The longest wait, because a new slot may have a shorter `ttl`.
const WAIT_MAX: Duration = Duration::from_millis(50);
