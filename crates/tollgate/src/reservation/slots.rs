//! Slots of requests that take longer than a slot lasts.
//!
//! A slot is free after its `ttl`, so that one whose process died is not lost for ever. As long as
//! its request is alive it is renewed: another one is taken, whether or not there is room, and then
//! the one before is given back. In that order, so that a request holds one at every instant.

use crate::Gate;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tollgate_core::{LimitParams, Penalty, Receipt};
use tollgate_store::{Adjustment, Answers, Change, Charge, Mode, ParamsId, Store, StoreCall};

/// A slot is renewed after this part of its time, so that a store may be away for a while.
const RENEWALS_PER_TTL: u64 = 3;

/// The slots that requests under way hold.
#[derive(Debug, Default)]
pub(crate) struct SlotRegistry {
    table: Mutex<SlotTable>,
}

#[derive(Debug, Default)]
struct SlotTable {
    last_id: u64,
    slots: BTreeMap<u64, HeldSlot>,
}

/// One of them, with all that a store has to know about it.
#[derive(Clone, Debug)]
pub(super) struct HeldSlot {
    pub(super) state_id: u64,
    pub(super) key: Box<[u8]>,
    pub(super) params: LimitParams,
    pub(super) mode: Mode,
    pub(super) penalty: Option<Penalty>,
    pub(super) receipt: Receipt,
    /// How long it lasts, and from when on it is to be renewed.
    pub(super) ttl_us: u64,
    pub(super) due_us: u64,
    /// Whether a store is being asked for another one, and whether the request ended meanwhile.
    pub(super) is_renewing: bool,
    pub(super) is_ended: bool,
}

/// A request's hold on a slot. When it is dropped the slot is no longer renewed.
#[derive(Debug)]
pub(super) struct SlotGuard {
    slots: Arc<SlotRegistry>,
    id: u64,
}

impl SlotRegistry {
    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(self: &Arc<Self>, slot: HeldSlot) -> SlotGuard {
        let mut table = self.lock();
        table.last_id += 1;
        let id = table.last_id;
        table.slots.insert(id, slot);
        SlotGuard { slots: self.clone(), id }
    }

    /// One that is due, which is away from now on.
    fn take_due(&self, now_us: u64) -> Option<(RenewalGuard<'_>, HeldSlot)> {
        let mut table = self.lock();
        let mut all = table.slots.iter_mut();
        let (id, slot) = all.find(|(_, slot)| slot.due_us <= now_us && !slot.is_renewing)?;
        slot.is_renewing = true;
        Some((RenewalGuard { slots: self, id: *id }, slot.clone()))
    }

    /// How long until one is due, or until one could be that comes now and lasts no longer than
    /// those that are there; `None` without any.
    fn next_due_in_us(&self, now_us: u64) -> Option<u64> {
        let table = self.lock();
        let next_us = |slot: &HeldSlot| {
            slot.due_us.saturating_sub(now_us).min(slot.ttl_us / RENEWALS_PER_TTL)
        };
        table.slots.values().map(next_us).min()
    }
}

/// A slot for which another one is being asked. Nobody may be left who waits for that; then it is
/// as if it had not been asked for.
struct RenewalGuard<'a> {
    slots: &'a SlotRegistry,
    id: u64,
}

impl RenewalGuard<'_> {
    /// It is back, renewed unless the store could not be told. What is to be given back: the one
    /// before, or the new one where nobody needs it any more.
    fn complete(self, now_us: u64, renewed: Option<Receipt>) -> Option<Receipt> {
        let mut table = self.slots.lock();
        // None is there where whoever held it let it expire.
        let slot = table.slots.get_mut(&self.id)?;
        let Some(renewed) = renewed else {
            // Not at once, since what nobody answered may have been done, and then each try takes
            // one that nobody gives back.
            slot.due_us = now_us.saturating_add(slot.ttl_us / RENEWALS_PER_TTL / 2);
            return None;
        };
        slot.due_us = HeldSlot::due_us(now_us, slot.ttl_us);
        let before = std::mem::replace(&mut slot.receipt, renewed);
        // Of a request that has ended meanwhile, the one before has been given back.
        Some(if slot.is_ended { renewed } else { before })
    }
}

impl Drop for RenewalGuard<'_> {
    fn drop(&mut self) {
        let mut table = self.slots.lock();
        let Some(slot) = table.slots.get_mut(&self.id) else { return };
        slot.is_renewing = false;
        if slot.is_ended {
            table.slots.remove(&self.id);
        }
    }
}

impl HeldSlot {
    pub(super) fn due_us(now_us: u64, ttl_us: u64) -> u64 {
        now_us.saturating_add(ttl_us / RENEWALS_PER_TTL)
    }

    fn adjustment(&self, change: Change) -> Adjustment<'_> {
        let charge = Charge {
            limit: self.state_id,
            key: &self.key,
            params: &self.params,
            params_id: ParamsId::default(),
            cost: self.receipt.cost,
            mode: self.mode,
            penalty: self.penalty.as_ref(),
        };
        Adjustment { charge, change }
    }
}

impl SlotGuard {
    /// What the request has to give back at its end. One that is being renewed is given back once
    /// more by whoever does that.
    pub(super) fn end(&self) -> Option<Receipt> {
        let mut table = self.slots.lock();
        let slot = table.slots.get_mut(&self.id)?;
        slot.is_ended = true;
        let receipt = slot.receipt;
        if !slot.is_renewing {
            table.slots.remove(&self.id);
        }
        Some(receipt)
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut table = self.slots.lock();
        if table.slots.get(&self.id).is_some_and(|slot| !slot.is_ended) {
            table.slots.remove(&self.id);
        }
    }
}

impl<S: Store> Gate<S> {
    /// Renews the slots of [`InFlightCharges`](crate::InFlightCharges) that have had a third of
    /// their time, and says how long to wait before it is to be asked again; `None` when no request
    /// holds any. Nothing else keeps the slot of a request that takes longer than its `ttl`.
    ///
    /// A slot that the store cannot be told of is tried again a little later.
    pub async fn renew_slots(&self, now_us: u64) -> Option<Duration> {
        let mut answers = Answers::default();
        while let Some((away, slot)) = self.slots.take_due(now_us) {
            let owe = [slot.adjustment(Change::Owe { units: slot.receipt.cost })];
            let renewed = match self.store.call(now_us, StoreCall::Adjust(&owe), &mut answers).await
            {
                Ok(()) => answers.get(0).and_then(|(_, rows)| rows.first()?.receipt),
                Err(error) => {
                    self.errors.count(&error);
                    None
                }
            };
            answers.clear();
            let Some(receipt) = away.complete(now_us, renewed) else { continue };
            let change =
                Change::GiveBack { units: receipt.cost, receipt, charged_params: slot.params };
            if let Err(error) = self
                .store
                .call(now_us, StoreCall::Adjust(&[slot.adjustment(change)]), &mut answers)
                .await
            {
                self.errors.count(&error);
            }
            answers.clear();
        }
        self.slots
            .next_due_in_us(now_us)
            .map(|us| Duration::from_micros(us).clamp(WAIT_MIN, WAIT_MAX))
    }
}

/// The least wait, also where a store could not be told.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// The longest, since a slot that comes meanwhile may last less than the others.
const WAIT_MAX: Duration = Duration::from_millis(50);
