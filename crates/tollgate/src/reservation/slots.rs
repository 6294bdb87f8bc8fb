//! Slot renewal, for requests that run longer than the `ttl` of their slot.
//!
//! A slot is freed after its `ttl`, so that the slots of a dead process are not lost. While a
//! request runs, its slot is renewed: the node takes another slot, even without room, and then
//! gives back the old one. So the request holds a slot at every instant.
//!
//! If the store fails for longer than the `ttl`, slots lapse while their requests run. Until a
//! lapsed slot is taken again, this node asks the store for no other slot of its key: the store
//! would have room for one request too many.

use super::in_flight::KeyedCharge;
use crate::engine::Gate;
use slab::Slab;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tollgate_core::Receipt;
use tollgate_store::{Adjustment, Change, Charge, Store, StoreCall};

/// Renewals per `ttl`, so that the store may fail for a while.
const RENEWALS_PER_TTL: u64 = 3;
/// The longest wait before a lapsed slot is renewed again: meanwhile its limit refuses.
const LAPSED_WAIT_US: u64 = 100_000;
/// Free entries that are kept, at most.
const KEPT_MAX: usize = 4_096;

/// The slots of requests in flight.
#[derive(Debug, Default)]
pub(crate) struct SlotRegistry {
    /// A slot stays while its request or a renewal refers to it.
    slots: Mutex<Slab<HeldSlot>>,
    /// The number of slots whose last renewal failed.
    failed: AtomicUsize,
}

/// A slot in use.
#[derive(Clone, Debug)]
pub(super) struct HeldSlot {
    charge: Arc<KeyedCharge>,
    receipt: Receipt,
    ttl_us: u64,
    /// The time at which the slot must be renewed.
    due_us: u64,
    /// Until then the store has the slot.
    kept_until_us: u64,
    /// Whether the last renewal failed.
    has_failed: bool,
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

    /// Whether a renewal of any slot failed: a slot may have lapsed.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) > 0
    }

    /// Whether a running request has a lapsed slot of a key that these charges have.
    pub(crate) fn has_lapsed(&self, now_us: u64, charges: &[&Charge<'_>]) -> bool {
        let is_lapsed = |slot: &HeldSlot| {
            slot.has_failed
                && slot.kept_until_us <= now_us
                && slot.request == RequestState::Running
                && !slot.charge.is_local()
        };
        let is_asked = |slot: &HeldSlot| {
            let KeyedCharge { state_id, key, .. } = &*slot.charge;
            charges.iter().any(|charge| charge.limit == *state_id && charge.key == &**key)
        };
        self.lock().iter().any(|(_, slot)| is_lapsed(slot) && is_asked(slot))
    }

    fn set_failed(&self, slot: &mut HeldSlot, has_failed: bool) {
        match (slot.has_failed, has_failed) {
            (false, true) => self.failed.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.failed.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        slot.has_failed = has_failed;
    }

    /// Removes an entry. A search visits free entries too, so the room of a peak is given back.
    fn remove(&self, slots: &mut Slab<HeldSlot>, index: usize) {
        if let Some(mut slot) = slots.try_remove(index) {
            self.set_failed(&mut slot, false);
        }
        if slots.is_empty() && slots.capacity() > KEPT_MAX {
            *slots = Slab::new();
        }
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
        self.slots.set_failed(slot, renewed.is_none());
        let Some(renewed) = renewed else {
            // A failed call may have taken a slot that is never given back, so the next call waits.
            let wait_us = slot.ttl_us / RENEWALS_PER_TTL / 2;
            let is_lapsed = slot.kept_until_us <= now_us;
            let wait_us = if is_lapsed { wait_us.min(LAPSED_WAIT_US) } else { wait_us };
            slot.due_us = now_us.saturating_add(wait_us);
            return None;
        };
        // A request that has ended gives back the old slot itself. If it was dropped, the `ttl`
        // frees the old slot.
        if slot.request != RequestState::Running {
            return Some(renewed);
        }
        slot.due_us = HeldSlot::due_us(now_us, slot.ttl_us);
        slot.kept_until_us = now_us.saturating_add(slot.ttl_us);
        Some(std::mem::replace(&mut slot.receipt, renewed))
    }
}

impl Drop for RenewalGuard<'_> {
    fn drop(&mut self) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(self.index) else { return };
        slot.is_renewing = false;
        if slot.request == RequestState::Dropped {
            self.slots.remove(&mut slots, self.index);
        }
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
        let kept_until_us = now_us.saturating_add(ttl_us);
        let (has_failed, is_renewing, request) = (false, false, RequestState::Running);
        Self { charge, receipt, ttl_us, due_us, kept_until_us, has_failed, is_renewing, request }
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
            _ => self.slots.remove(&mut slots, self.index),
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
