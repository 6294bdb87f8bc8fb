//! Requests that one caller asks together, decided as if one came after the other.
//!
//! Those of one slot go into one call, in their order, and different slots do not concern each
//! other: so all of them are on their way at once, although two calls for one slot could overtake
//! each other. Only a request over several slots is waited for, before the next one that meets any
//! of them, since it may have to give back first.

use super::Cluster;
use crate::StoreError;
use crate::redis::batch::queue::{BatchRows, ReplyReceiver, RequestRows};
use crate::redis::batch::{DecideRequest, DecideRequests};
use crate::redis::slot_of;
use smallvec::smallvec;
use std::sync::Arc;

/// The places of a request's lines, by slot.
pub(crate) type ChargesBySlot = Vec<(u16, Vec<usize>)>;

/// What is on its way, or about to be.
#[derive(Debug, Default)]
struct SlotPipeline {
    /// By slot, requests with their places among all.
    single_slot: Vec<(u16, Vec<usize>, DecideRequests)>,
    /// Requests over several slots.
    multi_slot: Vec<(Vec<u16>, usize, ReplyReceiver)>,
}

impl Cluster {
    /// Decides requests of one caller.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        now_us: Option<u64>,
        asks: DecideRequests,
    ) -> Result<BatchRows, StoreError> {
        self.until_map_read().await?;
        let mut answered: Vec<Option<RequestRows>> = asks.iter().map(|_| None).collect();
        let mut flight = SlotPipeline::default();
        for (place, ask) in asks.into_iter().enumerate() {
            let parts = charges_by_slot(&ask);
            if flight.could_be_overtaken(&parts) {
                flight.send_and_wait(self, now_us, &mut answered).await?;
            }
            match &parts[..] {
                [] => answered[place] = Some((true, smallvec![])),
                [(slot, _)] => flight.add(*slot, place, ask),
                _ => {
                    let slots = parts.iter().map(|part| part.0).collect();
                    flight.multi_slot.push((
                        slots,
                        place,
                        self.decide_across_slots(now_us, ask, parts),
                    ));
                }
            }
        }
        flight.send_and_wait(self, now_us, &mut answered).await?;
        answered.into_iter().collect::<Option<_>>().ok_or_else(super::multi_slot::no_answer)
    }
}

fn charges_by_slot(ask: &DecideRequest) -> ChargesBySlot {
    let mut parts = ChargesBySlot::new();
    for (place, line) in ask.charges.iter().enumerate() {
        let slot = slot_of(&line.name);
        match parts.iter_mut().find(|part| part.0 == slot) {
            Some(part) => part.1.push(place),
            None => parts.push((slot, vec![place])),
        }
    }
    parts
}

impl SlotPipeline {
    /// Whether such a request could overtake one before it.
    fn could_be_overtaken(&self, parts: &ChargesBySlot) -> bool {
        let meets = |slot: u16| parts.iter().any(|part| part.0 == slot);
        let split = self.multi_slot.iter().any(|(slots, ..)| slots.iter().any(|slot| meets(*slot)));
        split || (parts.len() > 1 && self.single_slot.iter().any(|(slot, ..)| meets(*slot)))
    }

    fn add(&mut self, slot: u16, place: usize, ask: DecideRequest) {
        match self.single_slot.iter_mut().find(|alone| alone.0 == slot) {
            Some((_, places, asks)) => {
                places.push(place);
                asks.push(ask);
            }
            None => self.single_slot.push((slot, vec![place], smallvec![ask])),
        }
    }

    /// Sends what was not sent, and waits for all of it.
    async fn send_and_wait(
        &mut self,
        cluster: &Cluster,
        now_us: Option<u64>,
        answered: &mut [Option<RequestRows>],
    ) -> Result<(), StoreError> {
        let mut sent = Vec::new();
        for (slot, places, asks) in self.single_slot.drain(..) {
            sent.push((places, cluster.push(slot, now_us, asks)?));
        }
        sent.extend(self.multi_slot.drain(..).map(|(_, place, reply)| (vec![place], reply)));
        for (places, reply) in sent {
            let rows = reply.await.unwrap_or_else(|_| Err(super::multi_slot::no_answer()))?;
            places.into_iter().zip(rows).for_each(|(place, row)| answered[place] = Some(row));
        }
        Ok(())
    }
}
