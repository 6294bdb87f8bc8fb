//! The requests of one caller, decided as if one after the other.
//!
//! Requests for one slot go into one call, in order. Calls for different slots are independent, so
//! they are sent at once. A request over several slots may have to give back: the next request
//! that uses one of its slots waits for it.

use super::{Cluster, group_by_slot, slot_of};
use crate::StoreError;
use crate::redis::batch::queue::{BatchRows, ReplyReceiver, RequestRows};
use crate::redis::batch::{DecideRequest, DecideRequests};
use crate::redis::client::connection_task_ended;
use smallvec::smallvec;
use std::sync::Arc;

/// The indexes of a request's charges, by slot.
pub(crate) type ChargesBySlot = Vec<(u16, Vec<usize>)>;

/// Requests that are sent, or about to be.
#[derive(Debug, Default)]
struct SlotPipeline {
    /// By slot, requests with their indexes.
    single_slot: Vec<(u16, Vec<usize>, DecideRequests)>,
    /// Requests over several slots.
    multi_slot: Vec<(Vec<u16>, usize, ReplyReceiver)>,
}

impl Cluster {
    pub(crate) async fn decide(
        self: &Arc<Self>,
        now_us: Option<u64>,
        requests: DecideRequests,
    ) -> Result<BatchRows, StoreError> {
        self.until_map_read().await?;
        let mut answered: Vec<Option<RequestRows>> = requests.iter().map(|_| None).collect();
        let mut pipeline = SlotPipeline::default();
        for (index, request) in requests.into_iter().enumerate() {
            let parts = group_by_slot(request.charges.iter().map(|charge| slot_of(&charge.name)));
            if pipeline.could_be_overtaken(&parts) {
                pipeline.send_and_wait(self, now_us, &mut answered).await?;
            }
            match &parts[..] {
                [] => answered[index] = Some((true, smallvec![])),
                [(slot, _)] => pipeline.add(*slot, index, request),
                _ => {
                    let slots = parts.iter().map(|part| part.0).collect();
                    let reply = self.decide_across_slots(now_us, request, parts);
                    pipeline.multi_slot.push((slots, index, reply));
                }
            }
        }
        pipeline.send_and_wait(self, now_us, &mut answered).await?;
        answered.into_iter().collect::<Option<_>>().ok_or_else(connection_task_ended)
    }
}

impl SlotPipeline {
    /// Whether a request with these slots could be decided before an earlier one.
    fn could_be_overtaken(&self, parts: &ChargesBySlot) -> bool {
        let meets = |slot: u16| parts.iter().any(|part| part.0 == slot);
        let split = self.multi_slot.iter().any(|(slots, ..)| slots.iter().any(|slot| meets(*slot)));
        split || (parts.len() > 1 && self.single_slot.iter().any(|(slot, ..)| meets(*slot)))
    }

    fn add(&mut self, slot: u16, index: usize, request: DecideRequest) {
        match self.single_slot.iter_mut().find(|group| group.0 == slot) {
            Some((_, indexes, requests)) => {
                indexes.push(index);
                requests.push(request);
            }
            None => self.single_slot.push((slot, vec![index], smallvec![request])),
        }
    }

    /// Sends the rest, and waits for all replies.
    async fn send_and_wait(
        &mut self,
        cluster: &Cluster,
        now_us: Option<u64>,
        answered: &mut [Option<RequestRows>],
    ) -> Result<(), StoreError> {
        let mut sent = Vec::new();
        for (slot, indexes, requests) in self.single_slot.drain(..) {
            sent.push((indexes, cluster.push(slot, now_us, requests)?));
        }
        sent.extend(self.multi_slot.drain(..).map(|(_, index, reply)| (vec![index], reply)));
        for (indexes, reply) in sent {
            let rows = reply.await.unwrap_or_else(|_| Err(connection_task_ended()))?;
            indexes.into_iter().zip(rows).for_each(|(i, row)| answered[i] = Some(row));
        }
        Ok(())
    }
}
