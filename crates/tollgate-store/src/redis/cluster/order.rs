//! Requests that one caller asks together, decided as if one came after the other.
//!
//! Those of one slot go into one call, in their order, and different slots do not concern each other: so all of them are on their way at once,
//! although two calls for one slot could overtake each other. Only a request over several slots is waited for, before the next one
//! that meets any of them, since it may have to give back first.

use super::super::batch::{Ask, Asks};
use super::super::queue::{Answered, Reply, Rows};
use super::super::slot_of;
use super::Cluster;
use crate::StoreError;
use smallvec::smallvec;
use std::sync::Arc;

/// The places of a request's lines, by slot.
pub(super) type Parts = Vec<(u16, Vec<usize>)>;

/// What is on its way, or about to be.
#[derive(Debug, Default)]
struct Flight {
    /// By slot, requests with their places among all.
    alone: Vec<(u16, Vec<usize>, Asks)>,
    /// Requests over several slots.
    split: Vec<(Vec<u16>, usize, Reply)>,
}

impl Cluster {
    /// Decides requests of one caller.
    pub(in super::super) async fn decide(
        self: &Arc<Self>,
        now_us: Option<u64>,
        asks: Asks,
    ) -> Result<Answered, StoreError> {
        self.until_known().await?;
        let mut answered: Vec<Option<Rows>> = asks.iter().map(|_| None).collect();
        let mut flight = Flight::default();
        for (place, ask) in asks.into_iter().enumerate() {
            let parts = parts(&ask);
            if flight.concerns(&parts) {
                flight.land(self, now_us, &mut answered).await?;
            }
            match &parts[..] {
                [] => answered[place] = Some((true, smallvec![])),
                [(slot, _)] => flight.add(*slot, place, ask),
                _ => {
                    let slots = parts.iter().map(|part| part.0).collect();
                    flight.split.push((slots, place, self.split(now_us, ask, parts)));
                }
            }
        }
        flight.land(self, now_us, &mut answered).await?;
        answered.into_iter().collect::<Option<_>>().ok_or_else(super::split::gone)
    }
}

fn parts(ask: &Ask) -> Parts {
    let mut parts = Parts::new();
    for (place, line) in ask.lines.iter().enumerate() {
        let slot = slot_of(&line.name);
        match parts.iter_mut().find(|part| part.0 == slot) {
            Some(part) => part.1.push(place),
            None => parts.push((slot, vec![place])),
        }
    }
    parts
}

impl Flight {
    /// Whether such a request could overtake one before it.
    fn concerns(&self, parts: &Parts) -> bool {
        let meets = |slot: u16| parts.iter().any(|part| part.0 == slot);
        let split = self.split.iter().any(|(slots, ..)| slots.iter().any(|slot| meets(*slot)));
        split || (parts.len() > 1 && self.alone.iter().any(|(slot, ..)| meets(*slot)))
    }

    fn add(&mut self, slot: u16, place: usize, ask: Ask) {
        match self.alone.iter_mut().find(|alone| alone.0 == slot) {
            Some((_, places, asks)) => {
                places.push(place);
                asks.push(ask);
            }
            None => self.alone.push((slot, vec![place], smallvec![ask])),
        }
    }

    /// Sends what was not sent, and waits for all of it.
    async fn land(
        &mut self,
        cluster: &Cluster,
        now_us: Option<u64>,
        answered: &mut [Option<Rows>],
    ) -> Result<(), StoreError> {
        let mut sent = Vec::new();
        for (slot, places, asks) in self.alone.drain(..) {
            sent.push((places, cluster.push(slot, now_us, asks)?));
        }
        sent.extend(self.split.drain(..).map(|(_, place, reply)| (vec![place], reply)));
        for (places, reply) in sent {
            let rows = reply.await.unwrap_or_else(|_| Err(super::split::gone()))?;
            places.into_iter().zip(rows).for_each(|(place, row)| answered[place] = Some(row));
        }
        Ok(())
    }
}
