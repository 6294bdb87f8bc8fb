//! Leases on Redis: their decisions, their table, the renewal task, and the monitors of primaries.
//!
//! A busy key has a lease, and its requests are decided on the calling thread: one lock, one clock,
//! one subtraction. The renewal task asks for units before they are needed, returns unused units,
//! and monitors the primaries. The store decides all other requests, with the params that leases
//! leave.

mod decide;
mod fence;
mod primary_monitors;
mod registry;
mod release;
mod renewal;
mod report;
mod stats;
mod table;
mod takeover;

pub use renewal::{lease_reply, lease_script};
pub use stats::LeaseStats;

pub(super) use decide::DecisionTimes;
pub(super) use fence::Fence;

use super::client::Servers;
use super::client::supervise::TaskSupervisor;
use super::key::KeyNamer;
use super::{BootClock, slot_of};
use crate::lease::{LeaseTerms, SpentUnits};
use crate::sync::lock_mutex;
use crate::{Answer, Charge, LeaseSettings, ParamsId, StoreError, StoreErrorKind};
use primary_monitors::PrimaryMonitors;
use registry::{LeaseRegistry, LeasedLimit};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use table::{LeaseAddress, LeaseDecision, LeaseTable};
use tokio::sync::{Mutex, mpsc};
use tollgate_core::{Algorithm, LimitParams};

/// The leases of this process, and the monitors of the primaries that granted them.
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
    /// Whether all units are being returned and no more are requested, because the process ends.
    closed: AtomicBool,
    /// The last shown values of `spent`, `local` and `refused`.
    stats_shown: [AtomicU64; 3],
    /// The error of the last call, for waiting requests.
    last_error: std::sync::Mutex<Option<StoreError>>,
    tasks: TaskSupervisor,
}

/// A command to the renewal task. Each lease is queued at most once.
#[derive(Clone, Copy, Debug)]
enum LeaseCommand {
    /// Ask, return or re-assert, as the lease needs.
    Renew(LeaseAddress),
    /// Read the markers of the primaries.
    CheckPrimaries,
}

impl Leases {
    pub(super) fn new(namer: &Arc<KeyNamer>, clock: BootClock) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        Self {
            registry: LeaseRegistry::new(),
            table: LeaseTable::new(),
            monitors: PrimaryMonitors::new(),
            clock,
            namer: Arc::clone(namer),
            commands,
            inbox: Mutex::new(inbox),
            started: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            stats_shown: [const { AtomicU64::new(0) }; 3],
            last_error: std::sync::Mutex::default(),
            tasks: TaskSupervisor::default(),
        }
    }

    /// Registers a limit for leasing; `None` if the store must decide it.
    pub(super) fn register(
        self: &Arc<Self>,
        servers: &Arc<Servers>,
        params: &LimitParams,
        leasing: &LeaseSettings,
    ) -> Option<ParamsId> {
        let LeaseSettings { lifetime_us, min_limit, grace_us, grace_policy } = *leasing;
        let terms = LeaseTerms::for_limit(params, lifetime_us, min_limit, grace_us)?;
        let (capacity, cost_max) = (params.capacity(), terms.store_params.capacity());
        let leased = LeasedLimit { terms, capacity, grace_policy, cost_max };
        let params_id = self.registry.register(&leased)?;
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

    #[inline]
    pub(super) fn leased_limit(&self, params_id: ParamsId) -> Option<&LeasedLimit> {
        self.registry.get(params_id)
    }

    /// Whether any limit is leased.
    pub(super) fn is_enabled(&self) -> bool {
        !self.registry.is_empty()
    }

    /// Takes a charge from the lease of its key, or returns the reason why not.
    #[inline]
    pub(super) fn take(
        &self,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
    ) -> (LeaseDecision, LeaseAddress) {
        let address = self.table.address(charge.limit, charge.key);
        (self.try_take(address, charge, leased, false), address)
    }

    /// Takes a charge. `counted`: the charge was tried before, and counts once as demand.
    #[inline]
    fn try_take(
        &self,
        address: LeaseAddress,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        counted: bool,
    ) -> LeaseDecision {
        let taken = self.table.take(address, || self.clock.now_us(), charge, leased, counted);
        let Some((decision, should_renew)) = taken else {
            if !counted {
                self.count_request(address, charge, leased);
            }
            return LeaseDecision::Direct;
        };
        if should_renew {
            self.send_command(LeaseCommand::Renew(address));
        }
        decision
    }

    /// Takes a charge from the lease of its key, and waits while a renewal is in flight.
    pub(super) async fn take_or_wait(
        &self,
        servers: &Servers,
        charge: &Charge<'_>,
        leased: &LeasedLimit,
        mut counted: bool,
    ) -> Result<(LeaseDecision, LeaseAddress), StoreError> {
        let address = self.table.address(charge.limit, charge.key);
        loop {
            // Enabled before the attempt, so that no notification is missed.
            let mut renewed = pin!(self.table.renewed(address).notified());
            renewed.as_mut().enable();
            match self.try_take(address, charge, leased, counted) {
                LeaseDecision::Wait if self.closed.load(Ordering::Relaxed) => {
                    return Ok((LeaseDecision::Direct, address));
                }
                LeaseDecision::Wait => counted = true,
                LeaseDecision::Failed => return Err(self.last_error()),
                decided => return Ok((decided, address)),
            }
            if let Some((slot, _)) = self.slot_and_grace_us(address)
                && !self.confirm_primary(servers, slot, leased).await?
            {
                return Ok((LeaseDecision::GracePeriod, address));
            }
            renewed.await;
        }
    }

    fn last_error(&self) -> StoreError {
        let error = lock_mutex(&self.last_error).clone();
        error.unwrap_or_else(|| StoreError::new(StoreErrorKind::Unreachable, ""))
    }

    fn record_result<T>(&self, result: &Result<T, StoreError>) {
        let error = result.as_ref().err().cloned();
        *lock_mutex(&self.last_error) = error;
    }

    /// Counts a request for a key without a lease. A busy key gets one.
    #[cold]
    fn count_request(&self, address: LeaseAddress, charge: &Charge<'_>, leased: &LeasedLimit) {
        let now_us = self.clock.now_us();
        let is_busy = self.table.count_request(address, now_us, leased);
        if !is_busy || self.closed.load(Ordering::Relaxed) {
            return;
        }
        let name = self.namer.state_key(charge.limit, charge.key, charge.params);
        let slot = slot_of(&name);
        if self.table.add(address, now_us, charge.params_id, (name, slot)) {
            self.send_command(LeaseCommand::Renew(address));
        }
    }

    /// Puts back the units of a request that another limit refused.
    pub(super) fn refund(&self, address: LeaseAddress, spent: &SpentUnits) {
        self.table.refund(address, self.clock.now_us(), spent);
    }

    /// Uncounts a refusal, because the request is decided again.
    pub(super) fn uncount_refusal(&self, address: LeaseAddress) {
        self.table.uncount_refusal(address);
    }

    /// Records the store's refusal, so that the lease stops asking until units may be available.
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
            // If units remain, only this cost was too high; it may be too high for ever.
            let is_told = outcome.remaining == 0 || charge.cost > leased.cost_max;
            let is_refused = !outcome.admitted && !answer.blocked;
            if let Some(entry) = entry.filter(|_| is_refused && is_told) {
                let waits = (outcome.retry_after_us, outcome.reset_after_us);
                entry.lease.record_refusal(&leased.terms, now_us, outcome.remaining, waits);
            }
        });
    }

    /// Units that the lease of the key can spend.
    pub(super) fn spendable(&self, charge: &Charge<'_>) -> u64 {
        let address = self.table.address(charge.limit, charge.key);
        let now_us = self.clock.now_us();
        self.table.with(address, |entry, _| entry.lease.spendable(now_us)).unwrap_or(0)
    }

    /// Clears a refusal, because the key changed in the store. With `surrender`, all units are
    /// returned.
    pub(super) fn limit_changed(&self, limit: u64, key: &[u8], surrender: bool) {
        self.apply_change(self.table.address(limit, key), surrender);
    }

    /// Like [`limit_changed`](Self::limit_changed), by the Redis key of the state.
    pub(super) fn limit_changed_by_name(&self, name: &[u8]) {
        if let Some(address) = self.table.find_by_name(name) {
            self.apply_change(address, false);
        }
    }

    fn apply_change(&self, address: LeaseAddress, surrender: bool) {
        let should_renew = self.table.with(address, |entry, _| {
            entry.lease.clear_refusal();
            if surrender {
                entry.lease.return_all();
            }
            surrender && !std::mem::replace(&mut entry.queued, true)
        });
        if should_renew == Some(true) {
            self.send_command(LeaseCommand::Renew(address));
        }
    }

    pub(super) fn stats(&self) -> LeaseStats {
        let mut stats = self.table.stats();
        (stats.grace_periods, stats.in_grace_period) = self.monitors.grace_periods();
        let LeaseStats { spent, local, refused, .. } = &mut stats;
        // A refund lowers these counters, but a metric must not decrease.
        for (shown, now) in self.stats_shown.iter().zip([spent, local, refused]) {
            *now = shown.fetch_max(*now, Ordering::Relaxed).max(*now);
        }
        stats
    }

    fn send_command(&self, command: LeaseCommand) {
        // An error means that the store is being dropped.
        let _ = self.commands.send(command);
    }
}
