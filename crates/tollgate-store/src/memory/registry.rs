//! Numbers that cells were written under, by ticket.

use super::pack::always_packs;
use crate::Ticket;
use crate::sync::{Lock, lock};
use std::collections::HashMap;
use std::sync::OnceLock;
use tollgate_core::Numbers;

/// Bits of a ticket in a cell's tag.
pub(crate) const TICKET_BITS: u32 = 12;
const TICKETS: usize = 1 << TICKET_BITS;
const PAGE: usize = 64;

type Page = [OnceLock<Numbers>; PAGE];

/// Read without a lock by every decision on state that other numbers wrote; written on enrolment only.
#[derive(Debug)]
pub(crate) struct Registry {
    pages: Box<[OnceLock<Box<Page>>]>,
    tickets: Lock<HashMap<Numbers, u16>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let pages = (0..TICKETS / PAGE).map(|_| OnceLock::new()).collect();
        Self { pages, tickets: Lock::new(HashMap::new()) }
    }

    /// The ticket of `numbers`. Once all are given out it is zero, which is valid and merely takes more memory.
    /// So it is for numbers whose state may outgrow its words: spilled from the start, it is paid for when the
    /// key is new and can still be turned away.
    pub(crate) fn enroll(&self, numbers: &Numbers) -> Ticket {
        if !always_packs(numbers) {
            return Ticket::default();
        }
        let mut tickets = lock(&self.tickets);
        if let Some(&ticket) = tickets.get(numbers) {
            return Ticket(ticket);
        }
        let ticket = tickets.len() + 1;
        let Some(page) = self.pages.get(ticket / PAGE) else {
            return Ticket::default();
        };
        let page = page.get_or_init(|| Box::new([const { OnceLock::new() }; PAGE]));
        // The map holds one entry for each cell that is set, so this one is empty.
        let _ = page[ticket % PAGE].set(*numbers);
        tickets.insert(*numbers, ticket as u16);
        Ticket(ticket as u16)
    }

    /// The numbers behind a ticket; `None` for zero and for one never given out.
    #[inline]
    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Numbers> {
        let ticket = usize::from(ticket.0);
        self.pages.get(ticket / PAGE)?.get()?[ticket % PAGE].get()
    }
}
