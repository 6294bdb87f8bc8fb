//! The task that speaks with the store about leases.

use super::super::batch::Tables;
use super::super::jitter::jitter;
use super::super::node::Node;
use super::super::replay::senseless;
use super::super::reply::bytes;
use super::super::servers::Servers;
use super::entry::Entry;
use super::stats::Stats;
use super::watches::Trust;
use super::{Address, Leases, Order, script};
use crate::StoreError;
use crate::lease::{Ask, Reply, Sighting, Terms};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;

/// Calls under way at once.
const CALLS: usize = 256;
/// How often leases are looked through at most, and at least.
const TICK_US: (u64, u64) = (8_000, 1_000_000);

/// What is said to the store about one lease.
struct Speech {
    name: Box<[u8]>,
    slot: u16,
    terms: Terms,
    ask: Ask,
    number: u64,
}

type Calls<'a> = FuturesUnordered<BoxFuture<'a, ()>>;

/// Speaks for all leases, until the store is dropped.
pub(super) async fn run(leases: Arc<Leases>, servers: Arc<Servers>) {
    let mut inbox = leases.inbox.lock().await;
    leases.begin();
    let mut calls = Calls::new();
    let mut tick = pin!(sleep(Duration::ZERO));
    loop {
        let event = poll_fn(|context| {
            // What is on its way is looked after first, since it makes room.
            while let Poll::Ready(Some(())) = calls.poll_next_unpin(context) {}
            if calls.len() < CALLS
                && let Poll::Ready(order) = inbox.poll_recv(context)
            {
                return Poll::Ready(Event::Ordered(order));
            }
            tick.as_mut().poll(context).map(|()| Event::Tick)
        });
        match event.await {
            Event::Ordered(Some(Order::Speak(address))) => {
                calls.push(leases.speak(&servers, address).boxed());
            }
            Event::Ordered(Some(Order::Look)) => leases.look(&servers, &mut calls),
            Event::Ordered(None) => return,
            Event::Tick => {
                leases.look(&servers, &mut calls);
                leases.tick();
                tick.set(sleep(leases.pause()));
            }
        }
    }
}

enum Event {
    Ordered(Option<Order>),
    Tick,
}

impl Leases {
    /// Whatever an earlier task had begun has no answer.
    fn begin(&self) {
        self.watches.forget_looks();
        for address in self.table.sweep(|entry, _| Some(entry.queued || entry.lease.is_asking())) {
            self.table.with(address, |entry, _| {
                entry.lease.abandon();
                entry.queued = true;
            });
            self.order(Order::Speak(address));
        }
    }

    fn pause(&self) -> Duration {
        let shortest_us = self.registry.lifetime_us() / 8;
        jitter(Duration::from_micros(shortest_us.clamp(TICK_US.0, TICK_US.1)))
    }

    /// What a process does now and then: returns what expired, forgets what is idle, asks where a key is used.
    fn tick(&self) {
        let now_us = self.clock.now_us();
        let found = self.table.sweep(|entry, _| {
            let leased = self.registry.get(entry.ticket)?;
            if !entry.queued && entry.lease.is_idle(&leased.terms, now_us) {
                return None;
            }
            let says = entry.assert || entry.lease.should_return(now_us);
            let says = says && now_us >= entry.rest_until_us;
            let speaks = !entry.queued && (says || entry.wants(now_us, 0));
            entry.queued |= speaks;
            Some(speaks)
        });
        found.into_iter().for_each(|address| self.order(Order::Speak(address)));
    }

    /// Says to the store what there is to say about one lease, and takes in its answer.
    pub(super) async fn speak(&self, servers: &Arc<Servers>, address: Address) {
        self.speak_of(servers, address).await;
        self.table.heard(address).notify_waiters();
    }

    async fn speak_of(&self, servers: &Arc<Servers>, address: Address) {
        let Some((slot, quiet_us)) = self.whereabouts(address) else { return };
        let trusted = match servers.home(slot).await {
            Ok(node) => self.watches.trust(&node, self.clock.now_us(), quiet_us),
            Err(_) => Trust::Unknown,
        };
        if trusted == Trust::Unknown {
            self.order(Order::Look);
        }
        let Some(speech) = self.prepare(address, trusted == Trust::Yes) else { return };
        let heard = call(servers, &speech).await;
        let relied_on = match &heard {
            Ok(reply) => self.is_relied_on(servers, address, &speech, reply).await,
            Err(_) => false,
        };
        let (now_us, renewed) = (self.clock.now_us(), self.table.holder());
        self.table.with(address, |entry, stats| {
            match heard {
                Ok(reply) if relied_on => {
                    return hear(entry, stats, now_us, &speech, &reply, renewed);
                }
                Ok(_) => stats.stranded += entry.lease.disown(speech.number, renewed).stranded,
                Err(_) => {
                    entry.lease.unanswered(speech.number);
                    // What only says what is held is said until somebody hears it.
                    entry.assert |= speech.ask.want == 0;
                    stats.failures += 1;
                }
            }
            let rest = jitter(Duration::from_micros(speech.terms.lifetime_us / 4));
            entry.rest_until_us = now_us + rest.as_micros() as u64;
        });
    }

    /// Whether what the store answered can be taken for what it is.
    async fn is_relied_on(
        &self,
        servers: &Arc<Servers>,
        address: Address,
        speech: &Speech,
        reply: &Reply,
    ) -> bool {
        let brings = |entry: &mut Entry, _: &mut Stats| entry.lease.brings(speech.number, reply);
        let Some(asked_us) = self.table.with(address, brings).flatten() else { return true };
        let times_us = (asked_us, self.clock.now_us());
        let ages_us = (reply.age_us, speech.terms.quiet_us);
        self.vouch(servers, speech.slot, times_us, ages_us).await
    }

    /// Where a lease is from, and for how long that would be quiet.
    pub(super) fn whereabouts(&self, address: Address) -> Option<(u16, u64)> {
        let (slot, ticket) = self.table.with(address, |entry, _| (entry.slot, entry.ticket))?;
        Some((slot, self.registry.get(ticket)?.terms.quiet_us))
    }

    /// What to say, if anything. Without trust nothing is asked for.
    fn prepare(&self, address: Address, trusted: bool) -> Option<Speech> {
        let (holder, number, now_us) =
            (self.table.holder(), self.table.flight(), self.clock.now_us());
        let closed = self.closed.load(std::sync::atomic::Ordering::Relaxed);
        self.table.with(address, |entry, stats| {
            entry.queued = false;
            let terms = self.registry.get(entry.ticket)?.terms;
            if entry.lease.is_asking() {
                return None;
            }
            let need = entry.short;
            let asks = trusted && !closed && entry.lease.should_ask(now_us, need);
            if !asks && !entry.assert && !entry.lease.should_return(now_us) {
                return None;
            }
            entry.assert = false;
            if asks {
                entry.short = 0;
            }
            stats.calls += 1;
            let ask = entry.lease.ask(&terms, now_us, (need, !asks), number, holder);
            let (name, slot) = (entry.name.clone(), entry.slot);
            Some(Speech { name, slot, terms, ask, number })
        })?
    }

    /// Looks at those primaries for which that is due.
    fn look<'a>(self: &'a Arc<Self>, servers: &'a Arc<Servers>, calls: &mut Calls<'a>) {
        let (now_us, quiet_us) = (self.clock.now_us(), self.registry.quiet_us());
        for node in servers.primaries() {
            if self.watches.starts_look(&node, now_us, quiet_us) {
                calls.push(self.look_at(servers, node).boxed());
            }
        }
    }

    pub(super) async fn look_at(&self, servers: &Arc<Servers>, node: Arc<Node>) {
        let (sent_us, dials) = (self.clock.now_us(), node.dials());
        let sighting = sight(servers, &node).await.ok();
        let now_us = self.clock.now_us();
        if self.watches.looked(&node, (sent_us, now_us), dials, sighting.as_ref()) {
            let held = self.table.sweep(|entry, _| {
                let here = servers.is_at(entry.slot, &node);
                entry.assert |= here;
                Some(here && !std::mem::replace(&mut entry.queued, true))
            });
            held.into_iter().for_each(|address| self.order(Order::Speak(address)));
        }
    }
}

async fn call(servers: &Arc<Servers>, speech: &Speech) -> Result<Reply, StoreError> {
    let mut tables = Tables::default();
    tables.key(speech.name.to_vec());
    tables.key(super::super::key::book(&speech.name));
    tables.numbers(&speech.terms.central);
    let script = script::ledger(&speech.terms.central);
    let program = script::program(&speech.terms, &speech.ask);
    let value = servers.call_patiently(speech.slot, script, &tables, program).await?;
    let packed = bytes(value).flatten().ok_or_else(senseless)?;
    script::lease_reply(&packed).ok_or_else(senseless)
}

async fn sight(servers: &Arc<Servers>, node: &Arc<Node>) -> Result<Sighting, StoreError> {
    let mut tables = Tables::default();
    tables.key(servers.mark(node).ok_or_else(senseless)?);
    let value = servers.call_at(node, &script::MARK, &tables, script::mark_program()).await?;
    script::sighting(value).ok_or_else(senseless)
}

fn hear(
    entry: &mut Entry,
    stats: &mut Stats,
    now_us: u64,
    speech: &Speech,
    reply: &Reply,
    renewed: crate::lease::Holder,
) {
    let heard = entry.lease.heard(&speech.terms, now_us, speech.number, reply, renewed);
    stats.granted += heard.granted;
    stats.returned += heard.returned;
    stats.stranded += heard.stranded;
    stats.rollbacks += u64::from(heard.rolled_back);
}
