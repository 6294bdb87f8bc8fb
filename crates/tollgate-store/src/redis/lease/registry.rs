//! The terms of every limit that is leased, by ticket.

use crate::lease::Terms;
use crate::sync::{Lock, lock};
use crate::{Ticket, WhileQuiet};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 64;
/// As many tickets as there are numbers for them; whoever comes later is decided directly.
const PAGES: usize = (u16::MAX as usize + 1) / PAGE;

/// A limit that is leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::redis) struct Leased {
    pub(in crate::redis) terms: Terms,
    /// What the limit itself allows at once, as it is shown.
    pub(in crate::redis) capacity: u64,
    pub(in crate::redis) while_quiet: WhileQuiet,
    /// What leases leave of that, so that more can never be taken at once.
    pub(in crate::redis) most: u64,
}

type Page = [OnceLock<Leased>; PAGE];

/// Read without a lock by every decision; written when rules are put in force.
#[derive(Debug)]
pub(super) struct Registry {
    pages: Box<[OnceLock<Box<Page>>]>,
    tickets: Lock<HashMap<Leased, u16>>,
    /// The shortest of all, which timers follow.
    lifetime_us: AtomicU64,
    quiet_us: AtomicU64,
}

impl Registry {
    pub(super) fn new() -> Self {
        Self {
            pages: (0..PAGES).map(|_| OnceLock::new()).collect(),
            tickets: Lock::new(HashMap::new()),
            lifetime_us: AtomicU64::new(u64::MAX),
            quiet_us: AtomicU64::new(u64::MAX),
        }
    }

    /// The ticket of these terms; `None` once all are given out.
    pub(super) fn enroll(&self, leased: &Leased) -> Option<Ticket> {
        let mut tickets = lock(&self.tickets);
        if let Some(&ticket) = tickets.get(leased) {
            return Some(Ticket(ticket));
        }
        let ticket = tickets.len() + 1;
        let page = self.pages.get(ticket / PAGE)?;
        let page = page.get_or_init(|| Box::new([const { OnceLock::new() }; PAGE]));
        // The map holds one entry for each cell that is set, so this one is empty.
        let _ = page[ticket % PAGE].set(*leased);
        tickets.insert(*leased, ticket as u16);
        self.lifetime_us.fetch_min(leased.terms.lifetime_us, Ordering::Relaxed);
        self.quiet_us.fetch_min(leased.terms.quiet_us, Ordering::Relaxed);
        Some(Ticket(ticket as u16))
    }

    /// The terms behind a ticket; `None` for that of a limit that is not leased.
    #[inline]
    pub(super) fn get(&self, ticket: Ticket) -> Option<&Leased> {
        let ticket = usize::from(ticket.0);
        if ticket == 0 {
            return None;
        }
        self.pages.get(ticket / PAGE)?.get()?[ticket % PAGE].get()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lifetime_us() == u64::MAX
    }

    pub(super) fn lifetime_us(&self) -> u64 {
        self.lifetime_us.load(Ordering::Relaxed)
    }

    pub(super) fn quiet_us(&self) -> u64 {
        self.quiet_us.load(Ordering::Relaxed)
    }
}
