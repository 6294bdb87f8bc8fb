//! Leases on Redis: what this process holds, and the calls by which it comes to hold it.
//!
//! Keys that are asked for often have a lease, from which their requests are decided on the calling thread: one lock, one clock, one
//! subtraction. A task on the store's own runtime asks for more before it is needed, returns what was not, and looks at the primaries. All
//! other requests are decided by the store as those of any limit are, by the numbers that leases leave room for.

mod confirm;
mod entry;
mod registry;
mod release;
mod report;
mod script;
mod stats;
mod table;
mod task;
mod watches;

pub use script::{lease_reply, lease_script};
pub use stats::Stats;

pub(super) use entry::Local;
pub(super) use registry::Leased;
pub(super) use table::Address;

use super::key::Namer;
use super::servers::Servers;
use super::task::Tasks;
use super::{BootClock, slot_of};
use crate::lease::{Spent, Terms};
use crate::{Answer, Charge, Leasing, StoreError, StoreErrorKind, Ticket};
use registry::Registry;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use table::Table;
use tokio::sync::{Mutex, mpsc};
use tollgate_core::{Algorithm, Numbers};
use watches::Watches;

/// What this process holds, and what it knows of whom it is held from.
#[derive(Debug)]
pub(super) struct Leases {
    registry: Registry,
    table: Table,
    watches: Watches,
    clock: BootClock,
    namer: Arc<Namer>,
    orders: mpsc::UnboundedSender<Order>,
    inbox: Mutex<mpsc::UnboundedReceiver<Order>>,
    started: AtomicBool,
    /// Whether everything has been returned, and nothing more is to be taken.
    closed: AtomicBool,
    /// What was spent, and the charges taken from a lease and refused, as they were shown last.
    shown: [AtomicU64; 3],
    tasks: Tasks,
}

/// What the task is to do. Each lease is in its inbox once at most.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Say something to the store about a lease.
    Speak(Address),
    /// Look at the primaries.
    Look,
}

impl Leases {
    pub(super) fn new(namer: &Arc<Namer>, clock: BootClock) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        Self {
            registry: Registry::new(),
            table: Table::new(),
            watches: Watches::new(),
            clock,
            namer: Arc::clone(namer),
            orders,
            inbox: Mutex::new(inbox),
            started: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            shown: [const { AtomicU64::new(0) }; 3],
            tasks: Tasks::default(),
        }
    }

    /// The ticket under which a limit with these numbers is leased; `None` where it has to be decided directly.
    pub(super) fn enroll(
        self: &Arc<Self>,
        servers: &Arc<Servers>,
        numbers: &Numbers,
        leasing: &Leasing,
    ) -> Option<Ticket> {
        let Leasing { lifetime_us, min_limit, quiet_us, while_quiet } = *leasing;
        let terms = Terms::of(numbers, lifetime_us, min_limit, quiet_us)?;
        let (capacity, most) = (numbers.capacity(), terms.central.capacity());
        let ticket = self.registry.enroll(&Leased { terms, capacity, while_quiet, most })?;
        if !self.started.swap(true, Ordering::AcqRel) {
            let (leases, servers) = (Arc::clone(self), Arc::clone(servers));
            let shared = servers.shared().clone();
            self.tasks.supervise("leases", &shared, &shared.runtime, move || {
                task::run(Arc::clone(&leases), Arc::clone(&servers))
            });
        }
        Some(ticket)
    }

    pub(super) fn stop(&self) {
        self.tasks.stop();
    }

    /// The terms of a charge whose limit is leased.
    #[inline]
    pub(super) fn of(&self, ticket: Ticket) -> Option<&Leased> {
        self.registry.get(ticket)
    }

    /// Whether any limit is leased.
    pub(super) fn are_used(&self) -> bool {
        !self.registry.is_empty()
    }

    /// Takes a charge from the lease of its key, if that can be.
    #[inline]
    pub(super) fn take(&self, charge: &Charge<'_>, leased: &Leased) -> (Local, Address) {
        let address = self.table.address(charge.limit, charge.key);
        let taken = self.table.take(address, || self.clock.now_us(), charge, leased, false);
        let Some((local, wants)) = taken else {
            self.warm(address, charge, leased);
            return (Local::Direct, address);
        };
        if wants {
            self.order(Order::Speak(address));
        }
        (local, address)
    }

    /// The same for whoever can wait: for as long as more is on its way. `counted` says that the charge has been tried before.
    pub(super) async fn take_in_time(
        &self,
        servers: &Servers,
        charge: &Charge<'_>,
        leased: &Leased,
        mut counted: bool,
    ) -> Result<(Local, Address), StoreError> {
        let address = self.table.address(charge.limit, charge.key);
        loop {
            // Before it is tried, so that nothing is said in between.
            let mut heard = pin!(self.table.heard(address).notified());
            heard.as_mut().enable();
            let taken = self.table.take(address, || self.clock.now_us(), charge, leased, counted);
            let Some((local, wants)) = taken else {
                if !counted {
                    self.warm(address, charge, leased);
                }
                return Ok((Local::Direct, address));
            };
            counted = true;
            if wants {
                self.order(Order::Speak(address));
            }
            match local {
                Local::Wait if self.closed.load(Ordering::Relaxed) => {
                    return Ok((Local::Direct, address));
                }
                Local::Wait => {}
                Local::Failed => return Err(StoreError::new(StoreErrorKind::Unreachable, "")),
                decided => return Ok((decided, address)),
            }
            if let Some((slot, quiet_us)) = self.whereabouts(address)
                && !self.confirm(servers, slot, quiet_us).await?
            {
                return Ok((Local::Quiet, address));
            }
            heard.await;
        }
    }

    /// A request for a key without a lease.
    #[cold]
    fn warm(&self, address: Address, charge: &Charge<'_>, leased: &Leased) {
        let now_us = self.clock.now_us();
        if !self.table.warm(address, now_us, leased) || self.closed.load(Ordering::Relaxed) {
            return;
        }
        let name = self.namer.name(charge.limit, charge.key, charge.numbers);
        let slot = slot_of(&name);
        if self.table.add(address, now_us, charge.ticket, (name, slot)) {
            self.order(Order::Speak(address));
        }
    }

    /// Takes back what was spent for a request that was refused elsewhere.
    pub(super) fn put_back(&self, address: Address, spent: &Spent) {
        self.table.put_back(address, self.clock.now_us(), spent);
    }

    /// A refusal was one of a request that has to be decided again.
    pub(super) fn unrefuse(&self, address: Address) {
        self.table.unrefuse(address);
    }

    /// The store itself decided a charge. Until it may have more than it had for one that it refused, so does the lease.
    pub(super) fn told(&self, charge: &Charge<'_>, leased: &Leased, answer: &Answer) {
        let address = self.table.address(charge.limit, charge.key);
        let outcome = &answer.outcome;
        let now_us = self.clock.now_us();
        self.table.count(address, |entry, stats| {
            stats.direct += 1;
            // Where something is left the cost was too much, and others may not be.
            let is_empty = !outcome.admitted && outcome.remaining == 0 && !answer.blocked;
            if let Some(entry) = entry.filter(|_| is_empty) {
                let waits = (outcome.retry_after_us, outcome.reset_after_us);
                entry.lease.refused(&leased.terms, now_us, outcome.remaining, waits);
            }
        });
    }

    /// Units that can be spent for a key.
    pub(super) fn good(&self, charge: &Charge<'_>) -> u64 {
        let address = self.table.address(charge.limit, charge.key);
        let now_us = self.clock.now_us();
        self.table.with(address, |entry, _| entry.lease.good(now_us)).unwrap_or(0)
    }

    /// Something changed for a key in the store: refusals no longer hold, and where it lost something what is held goes back.
    pub(super) fn changed(&self, limit: u64, key: &[u8], surrender: bool) {
        self.change(self.table.address(limit, key), surrender);
    }

    /// The same for whoever knows only the name of its state.
    pub(super) fn changed_at(&self, name: &[u8]) {
        if let Some(address) = self.table.named(name) {
            self.change(address, false);
        }
    }

    fn change(&self, address: Address, surrender: bool) {
        let order = self.table.with(address, |entry, _| {
            entry.lease.forget_refusal();
            if surrender {
                entry.lease.surrender();
            }
            surrender && !std::mem::replace(&mut entry.queued, true)
        });
        if order == Some(true) {
            self.order(Order::Speak(address));
        }
    }

    /// Whether these bytes name this process.
    fn is_process(&self, name: &[u8]) -> bool {
        self.table.is_process(name)
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = self.table.stats();
        let Stats { spent, local, refused, .. } = &mut stats;
        // What is put back was counted until then, and a counter does not fall.
        for (shown, now) in self.shown.iter().zip([spent, local, refused]) {
            *now = shown.fetch_max(*now, Ordering::Relaxed).max(*now);
        }
        stats
    }

    fn order(&self, order: Order) {
        // Nobody listens once the store is dropped.
        let _ = self.orders.send(order);
    }
}
