//! Leases on Redis: what this process holds, and the calls by which it comes to hold it.
//!
//! Keys that are asked for often have a lease, from which their requests are decided on the calling
//! thread: one lock, one clock, one subtraction. A task on the store's own runtime asks for more
//! before it is needed, returns what was not, and looks at the primaries. All other requests are
//! decided by the store as those of any limit are, by the numbers that leases leave room for.

mod entry;
mod primary_monitors;
mod registry;
mod release;
mod renewal;
mod report;
mod script;
mod stats;
mod table;

pub use script::{lease_reply, lease_script};
pub use stats::LeaseStats;

pub(super) use entry::LeaseDecision;
pub(super) use registry::LeasedLimit;
pub(super) use table::LeaseAddress;

use super::client::Servers;
use super::client::supervise::TaskSupervisor;
use super::key::KeyNamer;
use super::{BootClock, slot_of};
use crate::lease::{LeaseTerms, SpentUnits};
use crate::{Answer, Charge, LeaseSettings, ParamsId, StoreError, StoreErrorKind};
use primary_monitors::PrimaryMonitors;
use registry::LeaseRegistry;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use table::LeaseTable;
use tokio::sync::{Mutex, mpsc};
use tollgate_core::{Algorithm, LimitParams};

/// What this process holds, and what it knows of whom it is held from.
#[derive(Debug)]
pub(super) struct Leases {
    registry: LeaseRegistry,
    table: LeaseTable,
    monitors: PrimaryMonitors,
    clock: BootClock,
    namer: Arc<KeyNamer>,
    commands: mpsc::UnboundedSender<LeaseCommand>,
    inbox: Mutex<mpsc::UnboundedReceiver<LeaseCommand>>,
    started: AtomicBool,
    /// Whether everything has been returned, and nothing more is to be taken.
    closed: AtomicBool,
    /// What was spent, and the charges taken from a lease and refused, as they were shown last.
    stats_shown: [AtomicU64; 3],
    /// Why the last call was not answered, for requests that have nothing else to go by.
    last_error: std::sync::Mutex<Option<StoreError>>,
    tasks: TaskSupervisor,
}

/// What the task is to do. Each lease is in its inbox once at most.
#[derive(Clone, Copy, Debug)]
enum LeaseCommand {
    /// Say something to the store about a lease.
    Renew(LeaseAddress),
    /// Look at the primaries.
    CheckPrimaries,
}

impl Leases {
    pub(super) fn new(namer: &Arc<KeyNamer>, clock: BootClock) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        Self {
            registry: LeaseRegistry::new(),
            table: LeaseTable::new(),
            monitors: PrimaryMonitors::new(),
            clock,
            namer: Arc::clone(namer),
            commands: orders,
            inbox: Mutex::new(inbox),
            started: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            stats_shown: [const { AtomicU64::new(0) }; 3],
            last_error: std::sync::Mutex::default(),
            tasks: TaskSupervisor::default(),
        }
    }

    /// The ticket under which a limit with these numbers is leased; `None` where it has to be
    /// decided directly.
    pub(super) fn register(
        self: &Arc<Self>,
        servers: &Arc<Servers>,
        params: &LimitParams,
        leasing: &LeaseSettings,
    ) -> Option<ParamsId> {
        let LeaseSettings { lifetime_us, min_limit, quiet_us, grace_policy } = *leasing;
        let terms = LeaseTerms::for_limit(params, lifetime_us, min_limit, quiet_us)?;
        let (capacity, most) = (params.capacity(), terms.store_params.capacity());
        let params_id = self.registry.register(&LeasedLimit {
            terms,
            capacity,
            grace_policy,
            cost_max: most,
        })?;
        if !self.started.swap(true, Ordering::AcqRel) {
            let (leases, servers) = (Arc::clone(self), Arc::clone(servers));
            let shared = servers.shared().clone();
            self.tasks.supervise("leases", &shared, &shared.runtime, move || {
                renewal::run(Arc::clone(&leases), Arc::clone(&servers))
            });
        }
        Some(params_id)
    }

    pub(super) fn stop(&self) {
        self.tasks.stop();
    }

    /// The terms of a charge whose limit is leased.
    #[inline]
    pub(super) fn leased_limit(&self, params_id: ParamsId) -> Option<&LeasedLimit> {
        self.registry.get(params_id)
    }

    /// Whether any limit is leased.
    pub(super) fn is_enabled(&self) -> bool {
        !self.registry.is_empty()
    }

    /// Takes a charge from the lease of its key, if that can be.
    #[inline]
    pub(super) fn take(
        &self,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
    ) -> (LeaseDecision, LeaseAddress) {
        let address = self.table.address(charge.limit, charge.key);
        let taken = self.table.take(address, || self.clock.now_us(), charge, leased, false);
        let Some((local, wants)) = taken else {
            self.count_request(address, charge, leased);
            return (LeaseDecision::Direct, address);
        };
        if wants {
            self.send_command(LeaseCommand::Renew(address));
        }
        (local, address)
    }

    /// The same for whoever can wait: for as long as more is on its way. `counted` says that the
    /// charge has been tried before.
    pub(super) async fn take_or_wait(
        &self,
        servers: &Servers,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        mut counted: bool,
    ) -> Result<(LeaseDecision, LeaseAddress), StoreError> {
        let address = self.table.address(charge.limit, charge.key);
        loop {
            // Before it is tried, so that nothing is said in between.
            let mut heard = pin!(self.table.renewed(address).notified());
            heard.as_mut().enable();
            let taken = self.table.take(address, || self.clock.now_us(), charge, leased, counted);
            let Some((local, wants)) = taken else {
                if !counted {
                    self.count_request(address, charge, leased);
                }
                return Ok((LeaseDecision::Direct, address));
            };
            counted = true;
            if wants {
                self.send_command(LeaseCommand::Renew(address));
            }
            match local {
                LeaseDecision::Wait if self.closed.load(Ordering::Relaxed) => {
                    return Ok((LeaseDecision::Direct, address));
                }
                LeaseDecision::Wait => {}
                LeaseDecision::Failed => return Err(self.last_error()),
                decided => return Ok((decided, address)),
            }
            if let Some((slot, quiet_us)) = self.slot_and_grace_us(address)
                && !self.confirm_primary(servers, slot, quiet_us).await?
            {
                return Ok((LeaseDecision::GracePeriod, address));
            }
            heard.await;
        }
    }

    /// Why the last call about leases was not answered.
    fn last_error(&self) -> StoreError {
        let trouble = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        trouble.unwrap_or_else(|| StoreError::new(StoreErrorKind::Unreachable, ""))
    }

    /// Remembers how a call about leases ended.
    fn record_result<T>(&self, made: &Result<T, StoreError>) {
        let now = made.as_ref().err().cloned();
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// A request for a key without a lease.
    #[cold]
    fn count_request(&self, address: LeaseAddress, charge: &Charge<'_>, leased: &LeasedLimit) {
        let now_us = self.clock.now_us();
        if !self.table.count_request(address, now_us, leased) || self.closed.load(Ordering::Relaxed)
        {
            return;
        }
        let name = self.namer.state_key(charge.limit, charge.key, charge.params);
        let slot = slot_of(&name);
        if self.table.add(address, now_us, charge.params_id, (name, slot)) {
            self.send_command(LeaseCommand::Renew(address));
        }
    }

    /// Takes back what was spent for a request that was refused elsewhere.
    pub(super) fn refund(&self, address: LeaseAddress, spent: &SpentUnits) {
        self.table.refund(address, self.clock.now_us(), spent);
    }

    /// A refusal was one of a request that has to be decided again.
    pub(super) fn uncount_refusal(&self, address: LeaseAddress) {
        self.table.uncount_refusal(address);
    }

    /// The store itself decided a charge. Until it may have more than it had for one that it
    /// refused, so does the lease.
    pub(super) fn record_direct_decision(
        &self,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        answer: &Answer,
    ) {
        let address = self.table.address(charge.limit, charge.key);
        let outcome = &answer.outcome;
        let now_us = self.clock.now_us();
        self.table.count(address, |entry, stats| {
            stats.direct += 1;
            // Where something is left the cost was too much, and others may not be.
            let is_empty = !outcome.admitted && outcome.remaining == 0 && !answer.blocked;
            if let Some(entry) = entry.filter(|_| is_empty) {
                let waits = (outcome.retry_after_us, outcome.reset_after_us);
                entry.lease.record_refusal(&leased.terms, now_us, outcome.remaining, waits);
            }
        });
    }

    /// Units that can be spent for a key.
    pub(super) fn spendable(&self, charge: &Charge<'_>) -> u64 {
        let address = self.table.address(charge.limit, charge.key);
        let now_us = self.clock.now_us();
        self.table.with(address, |entry, _| entry.lease.spendable(now_us)).unwrap_or(0)
    }

    /// Something changed for a key in the store: refusals no longer hold, and where it lost
    /// something what is held goes back.
    pub(super) fn limit_changed(&self, limit: u64, key: &[u8], surrender: bool) {
        self.apply_change(self.table.address(limit, key), surrender);
    }

    /// The same for whoever knows only the name of its state.
    pub(super) fn limit_changed_by_name(&self, name: &[u8]) {
        if let Some(address) = self.table.find_by_name(name) {
            self.apply_change(address, false);
        }
    }

    fn apply_change(&self, address: LeaseAddress, surrender: bool) {
        let order = self.table.with(address, |entry, _| {
            entry.lease.clear_refusal();
            if surrender {
                entry.lease.return_all();
            }
            surrender && !std::mem::replace(&mut entry.queued, true)
        });
        if order == Some(true) {
            self.send_command(LeaseCommand::Renew(address));
        }
    }

    /// Whether these bytes name this process.
    fn is_process(&self, name: &[u8]) -> bool {
        self.table.is_process(name)
    }

    pub(super) fn stats(&self) -> LeaseStats {
        let mut stats = self.table.stats();
        let LeaseStats { spent, local, refused, .. } = &mut stats;
        // What is put back was counted until then, and a counter does not fall.
        for (shown, now) in self.stats_shown.iter().zip([spent, local, refused]) {
            *now = shown.fetch_max(*now, Ordering::Relaxed).max(*now);
        }
        stats
    }

    fn send_command(&self, order: LeaseCommand) {
        // Nobody listens once the store is dropped.
        let _ = self.commands.send(order);
    }
}
