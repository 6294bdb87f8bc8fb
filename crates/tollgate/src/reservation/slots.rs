//! Slot renewal, for requests that run longer than the `ttl` of their slot.
//!
//! A slot is freed after its `ttl`, so that the slots of a dead process are not lost. While a
//! request runs, its slot is renewed: the node takes another slot, even without room, and then
//! gives back the old one. So the request holds a slot at every instant.
//!
//! If the store fails for longer than the `ttl`, slots lapse while their requests run. Until a
//! lapsed slot is taken again, a limit with `on_store_failure: closed` refuses other requests of
//! its key at this node: the store would have room for one request too many.
//!
//! A failed renewal may have taken a slot that is never given back. So a key with a failed renewal
//! is tried with one call that takes nothing, and its slots are renewed once that call succeeds.

use super::in_flight::KeyedCharge;
use crate::engine::Gate;
use ahash::RandomState;
use slab::Slab;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tollgate_core::Receipt;
use tollgate_store::{Adjustment, Change, Charge, Store, StoreCall};

/// Renewals per `ttl`, so that the store may fail for a while.
const RENEWALS_PER_TTL: u64 = 3;
/// The longest wait between two probes of a key with a lapsed slot: meanwhile its limit refuses. A
/// renewal whose reply was lost waits for longer.
const LAPSED_WAIT_US: u64 = 100_000;
/// Free entries that are kept, at most.
const KEPT_MAX: usize = 4_096;
/// Entries that a pass visits before it lets requests have the lock.
const VISITS_PER_LOCK: usize = 1_024;

/// The slots of requests in flight.
#[derive(Debug, Default)]
pub(crate) struct SlotRegistry {
    slots: Mutex<Slots>,
    /// The number of keys with a failed renewal, for decisions to read without the lock.
    failing_keys: AtomicUsize,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Slots {
    /// A slot stays while its request or a renewal refers to it.
    held: Slab<HeldSlot>,
    /// The keys of running requests whose last renewal failed, by their hashes.
    failing: HashMap<u64, FailingKey, RandomState>,
}

/// A key with a failed renewal.
#[derive(Debug)]
struct FailingKey {
    /// The number of its slots whose last renewal failed.
    slots: usize,
    /// The earliest end of such a slot in the store, or an earlier instant.
    lapse_us: u64,
    /// Until then no renewal of the key calls the store.
    retry_us: u64,
    /// Whether the store has answered since the last failure.
    is_answering: bool,
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
    /// Whether the last renewal failed, so that the slot counts in its [`FailingKey`].
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

/// One visit to each slot.
struct RenewalPass {
    now_us: u64,
    /// The next entry to visit.
    next: usize,
    /// The time until the next slot is due, at most the renewal interval; `None` without slots.
    wait_us: Option<u64>,
}

impl RenewalPass {
    fn wait_at_most(&mut self, wait_us: u64) {
        self.wait_us = Some(self.wait_us.map_or(wait_us, |least_us| least_us.min(wait_us)));
    }
}

impl SlotRegistry {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        crate::sync::lock(&self.slots)
    }

    pub(super) fn register(self: &Arc<Self>, slot: HeldSlot) -> SlotGuard {
        let index = self.lock().held.insert(slot);
        SlotGuard { slots: self.clone(), index }
    }

    /// Whether a renewal of any slot failed: a slot may have lapsed.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failing_keys.load(Ordering::Relaxed) > 0
    }

    /// Whether a running request has a lapsed slot of the charge's key in the store.
    pub(crate) fn has_lapsed(&self, now_us: u64, charge: &Charge<'_>) -> bool {
        let key = self.key_hash(charge, false);
        self.lock().failing.get(&key).is_some_and(|key| key.lapse_us <= now_us)
    }

    fn key_hash(&self, charge: &Charge<'_>, is_local: bool) -> u64 {
        self.hasher.hash_one((is_local, charge.limit, charge.key))
    }

    fn key_hash_of(&self, slot: &HeldSlot) -> u64 {
        self.key_hash(&slot.charge.charge(0), slot.charge.is_local())
    }

    /// Counts a slot as failed, if its request runs.
    fn set_failed<'s>(&self, slots: &'s mut Slots, index: usize) -> Option<&'s mut FailingKey> {
        let slot = slots.held.get_mut(index)?;
        if slot.request != RequestState::Running {
            return None;
        }
        let key = slots.failing.entry(self.key_hash_of(slot)).or_insert_with(|| {
            self.failing_keys.fetch_add(1, Ordering::Relaxed);
            FailingKey { slots: 0, lapse_us: u64::MAX, retry_us: 0, is_answering: false }
        });
        if !std::mem::replace(&mut slot.has_failed, true) {
            key.slots += 1;
            key.lapse_us = key.lapse_us.min(slot.kept_until_us);
        }
        Some(key)
    }

    /// Ends [`set_failed`](Self::set_failed): the slot is renewed, or its request has ended.
    fn clear_failed(&self, slots: &mut Slots, index: usize) {
        let Some(slot) = slots.held.get_mut(index) else { return };
        if !std::mem::take(&mut slot.has_failed) {
            return;
        }
        if let Entry::Occupied(mut key) = slots.failing.entry(self.key_hash_of(slot)) {
            key.get_mut().slots -= 1;
            if key.get().slots == 0 {
                key.remove();
                self.failing_keys.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if slots.failing.is_empty() {
            slots.failing.shrink_to(KEPT_MAX);
        }
    }

    /// Removes an entry. A pass visits free entries too, so the room of a peak is given back.
    fn remove(&self, slots: &mut Slots, index: usize) {
        self.clear_failed(slots, index);
        slots.held.try_remove(index);
        if slots.held.is_empty() && slots.held.capacity() > KEPT_MAX {
            slots.held = Slab::new();
        }
    }

    /// Continues the pass to a slot that is due, and marks it as being renewed.
    fn take_due(&self, pass: &mut RenewalPass) -> Option<(RenewalGuard<'_>, HeldSlot)> {
        loop {
            let mut slots = self.lock();
            let capacity = slots.held.capacity();
            if pass.next >= capacity {
                return None;
            }
            let last = capacity.min(pass.next + VISITS_PER_LOCK);
            while pass.next < last {
                let index = pass.next;
                pass.next += 1;
                if let Some(due) = self.visit(&mut slots, pass, index) {
                    return Some(due);
                }
            }
        }
    }

    fn visit(
        &self,
        slots: &mut Slots,
        pass: &mut RenewalPass,
        index: usize,
    ) -> Option<(RenewalGuard<'_>, HeldSlot)> {
        let slot = slots.held.get_mut(index)?;
        if slot.request != RequestState::Running {
            return None;
        }
        let now_us = pass.now_us;
        // The wait after a renewal that fails. One that succeeds is next due later.
        let mut wait_us = HeldSlot::retry_wait_us(slot.ttl_us);
        if slot.due_us > now_us {
            wait_us = (slot.due_us - now_us).min(slot.ttl_us / RENEWALS_PER_TTL);
        }
        if slot.due_us > now_us || slot.is_renewing {
            pass.wait_at_most(wait_us);
            return None;
        }
        let is_failing = !slots.failing.is_empty();
        let key = if is_failing { Some(self.key_hash_of(slot)) } else { None };
        let mut must_probe = false;
        if let Some(key) = key.and_then(|key| slots.failing.get_mut(&key)) {
            if key.retry_us > now_us {
                pass.wait_at_most(key.retry_us - now_us);
                // The slot is not renewed, so it may lapse too.
                self.set_failed(slots, index);
                return None;
            }
            must_probe = !key.is_answering;
            if must_probe {
                wait_us = key.probe_wait_us(now_us, slot.ttl_us);
                key.retry_us = now_us.saturating_add(wait_us);
            }
        }
        pass.wait_at_most(wait_us);
        slot.is_renewing = true;
        let taken = slot.clone();
        Some((RenewalGuard { slots: self, index, must_probe }, taken))
    }
}

impl FailingKey {
    /// The wait after a call that takes nothing.
    fn probe_wait_us(&self, now_us: u64, ttl_us: u64) -> u64 {
        let until_lapse_us = self.lapse_us.saturating_sub(now_us).max(LAPSED_WAIT_US);
        HeldSlot::retry_wait_us(ttl_us).min(until_lapse_us)
    }
}

/// A renewal in progress. Dropping it without `complete` leaves the slot unchanged.
struct RenewalGuard<'a> {
    slots: &'a SlotRegistry,
    index: usize,
    /// Whether the store must first answer a call that takes nothing.
    must_probe: bool,
}

impl RenewalGuard<'_> {
    /// The store has answered for the key, so its slots can be renewed.
    fn set_answering(&self, now_us: u64) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.held.get(self.index) else { return };
        let key = self.slots.key_hash_of(slot);
        if let Some(key) = slots.failing.get_mut(&key) {
            (key.retry_us, key.is_answering) = (now_us, true);
        }
    }

    /// Ends the renewal; `None`: the store failed. Returns the slot to give back: the old one, or
    /// the new one if the request has ended.
    fn complete(self, now_us: u64, renewed: Option<Receipt>) -> Option<Receipt> {
        let mut slots = self.slots.lock();
        let ttl_us = slots.held.get(self.index)?.ttl_us;
        let Some(renewed) = renewed else {
            let key = self.slots.set_failed(&mut slots, self.index)?;
            // The call may have taken a slot that is never given back, so the next call waits.
            key.retry_us = now_us.saturating_add(HeldSlot::retry_wait_us(ttl_us));
            key.is_answering = false;
            return None;
        };
        self.slots.clear_failed(&mut slots, self.index);
        let slot = slots.held.get_mut(self.index)?;
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
        let Some(slot) = slots.held.get_mut(self.index) else { return };
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

    /// The wait after a renewal that failed.
    fn retry_wait_us(ttl_us: u64) -> u64 {
        ttl_us / RENEWALS_PER_TTL / 2
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
        self.slots.clear_failed(&mut slots, self.index);
        let slot = slots.held.get_mut(self.index)?;
        slot.request = RequestState::Ended;
        Some(slot.receipt)
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut slots = self.slots.lock();
        self.slots.clear_failed(&mut slots, self.index);
        match slots.held.get_mut(self.index) {
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
        let mut pass = RenewalPass { now_us, next: 0, wait_us: None };
        while let Some((renewal, slot)) = self.slots.take_due(&mut pass) {
            let is_local = slot.charge.is_local();
            if renewal.must_probe {
                let nothing = slot.adjustment(Change::Owe { units: 0 });
                let call = StoreCall::Adjust(&nothing);
                if self.call_holder(now_us, call, is_local).await.is_none() {
                    continue;
                }
                renewal.set_answering(now_us);
            }
            let taken = slot.adjustment(Change::Owe { units: slot.receipt.cost });
            let answers = self.call_holder(now_us, StoreCall::Adjust(&taken), is_local).await;
            let renewed = answers.and_then(|answers| answers.get(0)?.1.first()?.receipt);
            let Some(receipt) = renewal.complete(now_us, renewed) else { continue };
            let (units, charged_params) = (receipt.cost, slot.charge.reserved.params);
            let given = slot.adjustment(Change::GiveBack { units, receipt, charged_params });
            self.call_holder(now_us, StoreCall::Adjust(&given), is_local).await;
        }
        Some(Duration::from_micros(pass.wait_us?).clamp(WAIT_MIN, WAIT_MAX))
    }
}

/// The shortest wait, also after a failure of the store.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// The longest wait, because a new slot may have a shorter `ttl`.
const WAIT_MAX: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
