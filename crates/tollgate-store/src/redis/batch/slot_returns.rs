//! Slots of callers that left before they had their reply: no request will end these slots.
//!
//! A reply carries the slots that its requests took. If nobody reads the reply, because the caller
//! left or its deadline passed, the slots go to a queue of the server that answered, and a task of
//! that server gives them back. Other charges of the reply stay.

use super::NamedCharge;
use super::queue::BatchRows;
use crate::charge::GroupVerdicts;
use crate::redis::adjust::{ChangeBatch, give_back_of};
use crate::redis::client::control::ServerCommand;
use crate::redis::client::server::Server;
use crate::redis::cluster::{group_by_slot, slot_of};
use crate::sync::lock_mutex;
use crate::{Answer, Change};
use futures_util::future::join_all;
use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tokio::time::timeout;
use tollgate_core::LimitParams;

/// Limit of slots that wait to be given back at one server. The `ttl` frees further ones.
const WAITING_MAX: usize = 16_384;
/// Limit of slots per call, so that a call delays decisions as little as a batch does.
const SLOTS_PER_CALL_MAX: usize = 64;

/// The slots that wait to be given back at one server.
#[derive(Debug, Default)]
pub(crate) struct SlotReturns {
    waiting: Mutex<VecDeque<TakenSlot>>,
    wake: Notify,
}

/// A slot that a decision took.
#[derive(Debug)]
struct TakenSlot {
    charge: NamedCharge,
    give_back: Change,
    /// The instant of the decision, by the caller's clock; `None` uses the clock of Redis.
    now_us: Option<u64>,
}

/// The reply to a caller that may have left.
#[derive(Debug, Default)]
pub(crate) struct UnreadReply {
    pub(crate) rows: BatchRows,
    pub(crate) slots: UnreadSlots,
}

/// The slots of replies that nobody has read yet. Dropping them gives the slots back.
#[derive(Debug, Default)]
#[must_use = "dropping them gives the slots back"]
pub(crate) struct UnreadSlots(Vec<(Arc<SlotReturns>, TakenSlot)>);

impl UnreadSlots {
    /// Adds the slot of a charge that the server of `returns` decided, if the charge took one.
    pub(crate) fn add(
        &mut self,
        returns: &Arc<SlotReturns>,
        now_us: Option<u64>,
        (params, row): (&LimitParams, &Answer),
        charge: impl FnOnce() -> NamedCharge,
    ) {
        if matches!(params, LimitParams::Concurrency(_))
            && let Some(give_back) = give_back_of(params, row)
        {
            let slot = TakenSlot { charge: charge(), give_back, now_us };
            self.0.push((Arc::clone(returns), slot));
        }
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        if self.0.is_empty() {
            mem::swap(&mut self.0, &mut other.0);
        } else {
            self.0.append(&mut other.0);
        }
    }

    /// Keeps the slots of charges that the verdicts charge; somebody else gives back the rest.
    pub(crate) fn retain_charged(&mut self, verdicts: GroupVerdicts) {
        self.0.retain(|(_, slot)| verdicts.charges(slot.charge.mode));
    }

    /// Leaves the slots to the caller, which has its reply.
    pub(crate) fn set_read(mut self) {
        self.0.clear();
    }
}

impl Drop for UnreadSlots {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|(returns, slot)| returns.push(slot));
    }
}

impl SlotReturns {
    fn push(&self, slot: TakenSlot) {
        let mut waiting = lock_mutex(&self.waiting);
        if waiting.len() < WAITING_MAX {
            waiting.push_back(slot);
            drop(waiting);
            self.wake.notify_one();
        }
    }

    /// Waits for the slots of the next call.
    async fn next(&self) -> Vec<TakenSlot> {
        loop {
            let woken = self.wake.notified();
            let slots: Vec<_> = {
                let mut waiting = lock_mutex(&self.waiting);
                let count = waiting.len().min(SLOTS_PER_CALL_MAX);
                let slots = waiting.drain(..count).collect();
                if waiting.is_empty() {
                    waiting.shrink_to(SLOTS_PER_CALL_MAX);
                }
                slots
            };
            if !slots.is_empty() {
                return slots;
            }
            woken.await;
        }
    }
}

/// Gives slots back for ever.
pub(crate) async fn run(server: Arc<Server>) {
    loop {
        let slots = server.slot_returns.next().await;
        give_back(&server, &slots).await;
    }
}

/// Gives slots back. If a call fails, the `ttl` frees its slots: a repeated give-back could free
/// the slot of another request.
async fn give_back(server: &Arc<Server>, slots: &[TakenSlot]) {
    let (cluster, options) = (server.cluster(), &server.shared.options);
    let slot_number = |slot: &TakenSlot| match &cluster {
        Some(_) => slot_of(&slot.charge.name),
        None => 0,
    };
    let calls = group_by_slot(slots.iter().map(slot_number)).into_iter().map(|(number, own)| {
        let own = || own.iter().map(|index| &slots[*index]);
        let changes = ChangeBatch::new(own().map(|slot| (&slot.charge, &slot.give_back)));
        let now_us = own().filter_map(|slot| slot.now_us).max();
        let call = changes.call(now_us, options.ttl_margin);
        let (mut command, cluster) = (ServerCommand::Background(call), cluster.clone());
        async move {
            match cluster {
                Some(cluster) => drop(cluster.run(number, &mut command).await),
                None => drop(command.run_on(server).await),
            }
        }
    });
    // A hash slot that migrates could be asked again for ever.
    let _ = timeout(options.background_timeout(), join_all(calls)).await;
}

#[cfg(test)]
mod tests;
