//! The renewal task: asks for units, returns them, re-asserts them, and checks primaries.

use super::{LeaseAddress, LeaseCommand, Leases};
use crate::StoreError;
use crate::lease::{LEDGER_LUA, LeaseTerms, LedgerReply, LedgerRequest, Trust};
use crate::redis::batch::ScriptTables;
use crate::redis::batch::rows::{bytes, invalid_reply};
use crate::redis::client::Servers;
use crate::redis::client::server::Server;
use crate::redis::client::supervise::jitter;
use crate::redis::key::grant_book_key;
use crate::redis::script::Script;
use crate::redis::script::msgpack::{array, clamp, numbers};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;
use tollgate_core::{LimitParams, lua};

/// Limit of calls in flight for renewals. Checks of primaries may exceed it.
const RENEWALS_IN_FLIGHT_MAX: usize = 256;
/// The shortest and the longest pause between two sweeps over all leases.
const TICK_US: (u64, u64) = (8_000, 1_000_000);

/// The ledger scripts, one per algorithm.
static LEDGERS: [OnceLock<Script>; lua::MIRRORS.len()] =
    [const { OnceLock::new() }; lua::MIRRORS.len()];

/// One call of the ledger script.
struct RenewalRequest {
    name: Box<[u8]>,
    slot: u16,
    terms: LeaseTerms,
    request: LedgerRequest,
    number: u64,
}

type Calls<'a> = FuturesUnordered<BoxFuture<'a, ()>>;

/// Runs until the store is dropped, which aborts the task.
pub(crate) async fn run(leases: Arc<Leases>, servers: Arc<Servers>) {
    let mut inbox = leases.inbox.lock().await;
    leases.recover();
    let mut calls = Calls::new();
    let mut tick = pin!(sleep(Duration::ZERO));
    loop {
        let event = poll_fn(|context| {
            // Calls in flight come first, because finished calls make room for others.
            while let Poll::Ready(Some(())) = calls.poll_next_unpin(context) {}
            if calls.len() < RENEWALS_IN_FLIGHT_MAX
                && let Poll::Ready(command) = inbox.poll_recv(context)
            {
                return Poll::Ready(LeaseTaskEvent::Command(command));
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
    /// Recovers from a panic of an earlier task.
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

    /// Sweeps all leases: drops idle ones, and renews those that have to return, re-assert or ask.
    fn tick(&self) {
        let now_us = self.clock.now_us();
        let found = self.table.sweep(|entry, stats| {
            let leased = self.registry.get(entry.params_id)?;
            if !entry.queued && entry.lease.can_be_dropped(&leased.terms, now_us) {
                stats.stranded += entry.lease.held();
                return None;
            }
            let reports = (entry.must_reassert || entry.lease.should_return(now_us))
                && now_us >= entry.backoff_until_us;
            let renews = !entry.queued && (reports || entry.should_renew(now_us, 0));
            entry.queued |= renews;
            Some(renews)
        });
        found.into_iter().for_each(|address| self.send_command(LeaseCommand::Renew(address)));
    }

    /// Renews one lease, and notifies the waiting requests.
    pub(crate) async fn renew(&self, servers: &Arc<Servers>, address: LeaseAddress) {
        self.exchange(servers, address).await;
        self.table.renewed(address).notify_waiters();
    }

    async fn exchange(&self, servers: &Arc<Servers>, address: LeaseAddress) {
        let Some((slot, grace_us)) = self.slot_and_grace_us(address) else { return };
        let trusted = match servers.server_for_slot(slot).await {
            Ok(server) => self.monitors.trust(&server, self.clock.now_us(), grace_us),
            Err(_) => Trust::Unknown,
        };
        if trusted == Trust::Unknown {
            self.send_command(LeaseCommand::CheckPrimaries);
        }
        let trusted = trusted == Trust::Trusted;
        let Some(renewal) = self.prepare_renewal(address, trusted) else { return };
        let reply = send_renewal(servers, &renewal).await;
        self.record_result(&reply);
        let is_valid = match &reply {
            Ok(reply) => self.is_grant_trusted(servers, address, &renewal, reply).await,
            Err(_) => false,
        };
        let (now_us, new_holder) = (self.clock.now_us(), self.table.new_holder());
        self.table.with(address, |entry, stats| {
            match reply {
                Ok(reply) if is_valid => {
                    let RenewalRequest { terms, number, .. } = &renewal;
                    let lease = &mut entry.lease;
                    let result = lease.apply_reply(terms, now_us, *number, &reply, new_holder);
                    stats.granted += result.granted;
                    stats.returned += result.returned;
                    stats.stranded += lease.take_stranded();
                    stats.rollbacks += u64::from(result.rolled_back);
                    return;
                }
                Ok(reply) => {
                    let RenewalRequest { terms, number, .. } = &renewal;
                    entry.is_grant_discarded = true;
                    let lease = &mut entry.lease;
                    let result = lease.discard_reply(terms, now_us, *number, &reply, new_holder);
                    stats.granted += result.granted;
                    stats.returned += result.returned;
                    stats.stranded += entry.lease.take_stranded();
                }
                Err(_) => {
                    entry.is_grant_discarded = false;
                    entry.lease.request_failed(renewal.number);
                    // A re-assertion is repeated until it succeeds.
                    entry.must_reassert |= renewal.request.want == 0;
                    stats.failures += 1;
                }
            }
            let backoff = jitter(Duration::from_micros(renewal.terms.lifetime_us / 4));
            entry.backoff_until_us = now_us + backoff.as_micros() as u64;
        });
    }

    /// Whether a grant in the reply may be spent.
    async fn is_grant_trusted(
        &self,
        servers: &Arc<Servers>,
        address: LeaseAddress,
        renewal: &RenewalRequest,
        reply: &LedgerReply,
    ) -> bool {
        let sent_us = self
            .table
            .with(address, |entry, _| entry.lease.new_grant_sent_us(renewal.number, reply));
        let Some(sent_us) = sent_us.flatten() else { return true };
        let times_us = (sent_us, self.clock.now_us());
        let ages_us = (reply.age_us, renewal.terms.grace_us);
        self.verify_grant(servers, renewal.slot, times_us, ages_us).await
    }

    /// The slot of a lease, and the grace period of its limit.
    pub(crate) fn slot_and_grace_us(&self, address: LeaseAddress) -> Option<(u16, u64)> {
        let (slot, params_id) =
            self.table.with(address, |entry, _| (entry.slot, entry.params_id))?;
        Some((slot, self.registry.get(params_id)?.terms.grace_us))
    }

    /// The request to send, if any. Asks for no units if the primary is not trusted.
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
            let request = entry.lease.start_request(&terms, now_us, (need, !asks), number, holder);
            stats.stranded += entry.lease.take_stranded();
            let (name, slot) = (entry.name.clone(), entry.slot);
            Some(RenewalRequest { name, slot, terms, request, number })
        })?
    }

    /// Checks the primaries whose check is due.
    fn check_due_primaries<'a>(
        self: &'a Arc<Self>,
        servers: &'a Arc<Servers>,
        calls: &mut Calls<'a>,
    ) {
        let (now_us, grace_us) = (self.clock.now_us(), self.registry.grace_us());
        for server in servers.primaries() {
            if self.monitors.begin_due_check(&server, now_us, grace_us) {
                calls.push(self.check_primary(servers, server).boxed());
            }
        }
    }

    pub(crate) async fn check_primary(&self, servers: &Arc<Servers>, server: Arc<Server>) {
        let reading = self.look_at_primary(servers, &server).await;
        self.record_result(&reading);
        let now_us = self.clock.now_us();
        let changed = self.monitors.finish_check(&server, now_us, reading.ok());
        let grace_us = self.registry.grace_us();
        if let Some(began) = self.monitors.update_grace_period(&server, now_us, grace_us) {
            servers.shared().options.notify(|observer| {
                if began {
                    observer.grace_period_began(&server.name)
                } else {
                    observer.grace_period_ended(&server.name)
                }
            });
        }
        if changed {
            let held = self.table.sweep(|entry, _| {
                let here = servers.serves_slot(entry.slot, &server);
                entry.must_reassert |= here;
                Some(here && !std::mem::replace(&mut entry.queued, true))
            });
            held.into_iter().for_each(|address| self.send_command(LeaseCommand::Renew(address)));
        }
    }
}

async fn send_renewal(
    servers: &Arc<Servers>,
    renewal: &RenewalRequest,
) -> Result<LedgerReply, StoreError> {
    let RenewalRequest { name, slot, terms, request, .. } = renewal;
    let mut tables = ScriptTables::default();
    tables.key_index_of(name.to_vec());
    tables.key_index_of(grant_book_key(name));
    tables.params_index(&terms.store_params);
    let (script, program) = (ledger_script(&terms.store_params), pack_request(terms, request));
    let call = servers.script_call(script, &tables, program, None);
    let value = servers.background_call(*slot, call).await?;
    let packed = bytes(value).flatten().ok_or_else(invalid_reply)?;
    lease_reply(&packed).ok_or_else(invalid_reply)
}

/// The ledger script for a limit with these params.
fn ledger_script(store_params: &LimitParams) -> &'static Script {
    let index = lua::to_lua_params(store_params)[0].saturating_sub(1) as usize;
    let index = index.min(LEDGERS.len() - 1);
    LEDGERS[index].get_or_init(|| Script::one_algorithm(index, LEDGER_LUA))
}

fn pack_request(terms: &LeaseTerms, request: &LedgerRequest) -> Vec<u8> {
    array(&request.to_script_args(terms).map(clamp))
}

/// The ledger script for these terms, its packed params and its packed request. For tests that call
/// the script on a server.
pub fn lease_script(
    terms: &LeaseTerms,
    request: &LedgerRequest,
) -> (&'static str, Vec<u8>, Vec<u8>) {
    let mut tables = ScriptTables::default();
    tables.params_index(&terms.store_params);
    let [packed, _] = tables.packed();
    (&ledger_script(&terms.store_params).text, packed, pack_request(terms, request))
}

/// Reads the ledger script's reply; `None` if it is malformed.
pub fn lease_reply(bytes: &[u8]) -> Option<LedgerReply> {
    LedgerReply::from_script_reply(numbers(bytes)?)
}
