//! The task that speaks with the store about leases.

use super::entry::LeaseEntry;
use super::primary_monitors::Trust;
use super::stats::LeaseStats;
use super::{LeaseAddress, LeaseCommand, Leases, script};
use crate::StoreError;
use crate::lease::{LeaseTerms, LedgerReply, LedgerRequest, MarkerReading};
use crate::redis::batch::ScriptTables;
use crate::redis::batch::reply::bytes;
use crate::redis::batch::rows::invalid_reply;
use crate::redis::client::Servers;
use crate::redis::client::node::Node;
use crate::redis::client::supervise::jitter;
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
struct RenewalRequest {
    name: Box<[u8]>,
    slot: u16,
    terms: LeaseTerms,
    ask: LedgerRequest,
    number: u64,
}

type Calls<'a> = FuturesUnordered<BoxFuture<'a, ()>>;

/// Speaks for all leases, until the store is dropped.
pub(crate) async fn run(leases: Arc<Leases>, servers: Arc<Servers>) {
    let mut inbox = leases.inbox.lock().await;
    leases.recover();
    let mut calls = Calls::new();
    let mut tick = pin!(sleep(Duration::ZERO));
    loop {
        let event = poll_fn(|context| {
            // What is on its way is looked after first, since it makes room.
            while let Poll::Ready(Some(())) = calls.poll_next_unpin(context) {}
            if calls.len() < CALLS
                && let Poll::Ready(order) = inbox.poll_recv(context)
            {
                return Poll::Ready(LeaseTaskEvent::Command(order));
            }
            tick.as_mut().poll(context).map(|()| LeaseTaskEvent::Tick)
        });
        match event.await {
            LeaseTaskEvent::Command(Some(LeaseCommand::Renew(address))) => {
                calls.push(leases.renew(&servers, address).boxed());
            }
            LeaseTaskEvent::Command(Some(LeaseCommand::CheckPrimaries)) => {
                leases.check_due_primaries(&servers, &mut calls)
            }
            LeaseTaskEvent::Command(None) => return,
            LeaseTaskEvent::Tick => {
                leases.check_due_primaries(&servers, &mut calls);
                leases.tick();
                tick.set(sleep(leases.pause()));
            }
        }
    }
}

enum LeaseTaskEvent {
    Command(Option<LeaseCommand>),
    Tick,
}

impl Leases {
    /// Whatever an earlier task had begun has no answer.
    fn recover(&self) {
        self.monitors.forget_checks();
        for address in
            self.table.sweep(|entry, _| Some(entry.queued || entry.lease.has_request_in_flight()))
        {
            self.table.with(address, |entry, _| {
                entry.lease.forget_request();
                entry.queued = true;
            });
            self.send_command(LeaseCommand::Renew(address));
        }
    }

    fn pause(&self) -> Duration {
        let shortest_us = self.registry.lifetime_us() / 8;
        jitter(Duration::from_micros(shortest_us.clamp(TICK_US.0, TICK_US.1)))
    }

    /// What a process does now and then: returns what expired, forgets what is idle, asks where a
    /// key is used.
    fn tick(&self) {
        let now_us = self.clock.now_us();
        let found = self.table.sweep(|entry, _| {
            let leased = self.registry.get(entry.params_id)?;
            if !entry.queued && entry.lease.can_be_dropped(&leased.terms, now_us) {
                return None;
            }
            let says = entry.must_reassert || entry.lease.should_return(now_us);
            let says = says && now_us >= entry.backoff_until_us;
            let speaks = !entry.queued && (says || entry.should_renew(now_us, 0));
            entry.queued |= speaks;
            Some(speaks)
        });
        found.into_iter().for_each(|address| self.send_command(LeaseCommand::Renew(address)));
    }

    /// Says to the store what there is to say about one lease, and takes in its answer.
    pub(crate) async fn renew(&self, servers: &Arc<Servers>, address: LeaseAddress) {
        self.exchange(servers, address).await;
        self.table.renewed(address).notify_waiters();
    }

    async fn exchange(&self, servers: &Arc<Servers>, address: LeaseAddress) {
        let Some((slot, quiet_us)) = self.slot_and_grace_us(address) else { return };
        let trusted = match servers.node_for_slot(slot).await {
            Ok(node) => self.monitors.trust(&node, self.clock.now_us(), quiet_us),
            Err(_) => Trust::Unknown,
        };
        if trusted == Trust::Unknown {
            self.send_command(LeaseCommand::CheckPrimaries);
        }
        let Some(speech) = self.prepare_renewal(address, trusted == Trust::Trusted) else { return };
        let heard = send_renewal(servers, &speech).await;
        self.record_result(&heard);
        let relied_on = match &heard {
            Ok(reply) => self.is_grant_trusted(servers, address, &speech, reply).await,
            Err(_) => false,
        };
        let (now_us, renewed) = (self.clock.now_us(), self.table.new_holder());
        self.table.with(address, |entry, stats| {
            match heard {
                Ok(reply) if relied_on => {
                    return apply_reply(entry, stats, now_us, &speech, &reply, renewed);
                }
                Ok(_) => {
                    stats.stranded += entry.lease.discard_reply(speech.number, renewed).stranded
                }
                Err(_) => {
                    entry.lease.request_failed(speech.number);
                    // What only says what is held is said until somebody hears it.
                    entry.must_reassert |= speech.ask.want == 0;
                    stats.failures += 1;
                }
            }
            let rest = jitter(Duration::from_micros(speech.terms.lifetime_us / 4));
            entry.backoff_until_us = now_us + rest.as_micros() as u64;
        });
    }

    /// Whether what the store answered can be taken for what it is.
    async fn is_grant_trusted(
        &self,
        servers: &Arc<Servers>,
        address: LeaseAddress,
        speech: &RenewalRequest,
        reply: &LedgerReply,
    ) -> bool {
        let brings = |entry: &mut LeaseEntry, _: &mut LeaseStats| {
            entry.lease.new_grant_sent_us(speech.number, reply)
        };
        let Some(asked_us) = self.table.with(address, brings).flatten() else { return true };
        let times_us = (asked_us, self.clock.now_us());
        let ages_us = (reply.age_us, speech.terms.quiet_us);
        self.verify_grant(servers, speech.slot, times_us, ages_us).await
    }

    /// Where a lease is from, and for how long that would be quiet.
    pub(crate) fn slot_and_grace_us(&self, address: LeaseAddress) -> Option<(u16, u64)> {
        let (slot, params_id) =
            self.table.with(address, |entry, _| (entry.slot, entry.params_id))?;
        Some((slot, self.registry.get(params_id)?.terms.quiet_us))
    }

    /// What to say, if anything. Without trust nothing is asked for.
    fn prepare_renewal(&self, address: LeaseAddress, trusted: bool) -> Option<RenewalRequest> {
        let (holder, number, now_us) =
            (self.table.new_holder(), self.table.new_request_number(), self.clock.now_us());
        let closed = self.closed.load(std::sync::atomic::Ordering::Relaxed);
        self.table.with(address, |entry, stats| {
            entry.queued = false;
            let terms = self.registry.get(entry.params_id)?.terms;
            if entry.lease.has_request_in_flight() {
                return None;
            }
            let need = entry.unmet_cost;
            let asks = trusted && !closed && entry.lease.should_ask(now_us, need);
            if !asks && !entry.must_reassert && !entry.lease.should_return(now_us) {
                return None;
            }
            entry.must_reassert = false;
            if asks {
                entry.unmet_cost = 0;
            }
            stats.calls += 1;
            let ask = entry.lease.start_request(&terms, now_us, (need, !asks), number, holder);
            let (name, slot) = (entry.name.clone(), entry.slot);
            Some(RenewalRequest { name, slot, terms, ask, number })
        })?
    }

    /// Looks at those primaries for which that is due.
    fn check_due_primaries<'a>(
        self: &'a Arc<Self>,
        servers: &'a Arc<Servers>,
        calls: &mut Calls<'a>,
    ) {
        let (now_us, quiet_us) = (self.clock.now_us(), self.registry.quiet_us());
        for node in servers.primaries() {
            if self.monitors.begin_due_check(&node, now_us, quiet_us) {
                calls.push(self.check_primary(servers, node).boxed());
            }
        }
    }

    pub(crate) async fn check_primary(&self, servers: &Arc<Servers>, node: Arc<Node>) {
        let (sent_us, dials) = (self.clock.now_us(), node.connects());
        let sighted = read_marker(servers, &node).await;
        self.record_result(&sighted);
        let sighting = sighted.ok();
        let now_us = self.clock.now_us();
        if self.monitors.finish_check(&node, (sent_us, now_us), dials, sighting.as_ref()) {
            let held = self.table.sweep(|entry, _| {
                let here = servers.serves_slot(entry.slot, &node);
                entry.must_reassert |= here;
                Some(here && !std::mem::replace(&mut entry.queued, true))
            });
            held.into_iter().for_each(|address| self.send_command(LeaseCommand::Renew(address)));
        }
    }
}

async fn send_renewal(
    servers: &Arc<Servers>,
    speech: &RenewalRequest,
) -> Result<LedgerReply, StoreError> {
    let mut tables = ScriptTables::default();
    tables.key_index_of(speech.name.to_vec());
    tables.key_index_of(crate::redis::key::grant_book_key(&speech.name));
    tables.params_index(&speech.terms.store_params);
    let script = script::ledger(&speech.terms.store_params);
    let program = script::pack_request(&speech.terms, &speech.ask);
    let value = servers.background_call(speech.slot, script, &tables, program).await?;
    let packed = bytes(value).flatten().ok_or_else(invalid_reply)?;
    script::lease_reply(&packed).ok_or_else(invalid_reply)
}

async fn read_marker(
    servers: &Arc<Servers>,
    node: &Arc<Node>,
) -> Result<MarkerReading, StoreError> {
    let mut tables = ScriptTables::default();
    tables.key_index_of(servers.marker_key(node).ok_or_else(invalid_reply)?);
    let value =
        servers.background_call_at(node, &script::MARKER, &tables, script::marker_args()).await?;
    script::marker_reading(value).ok_or_else(invalid_reply)
}

fn apply_reply(
    entry: &mut LeaseEntry,
    stats: &mut LeaseStats,
    now_us: u64,
    speech: &RenewalRequest,
    reply: &LedgerReply,
    renewed: crate::lease::Holder,
) {
    let heard = entry.lease.apply_reply(&speech.terms, now_us, speech.number, reply, renewed);
    stats.granted += heard.granted;
    stats.returned += heard.returned;
    stats.stranded += heard.stranded;
    stats.rollbacks += u64::from(heard.rolled_back);
}
