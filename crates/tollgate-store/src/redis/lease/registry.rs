//! The terms of every limit that is leased, by ticket.

use crate::lease::LeaseTerms;
use crate::sync::{Lock, lock};
use crate::{GracePolicy, ParamsId};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 64;
/// As many tickets as there are numbers for them; whoever comes later is decided directly.
const PAGES: usize = (u16::MAX as usize + 1) / PAGE;

/// A limit that is leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeasedLimit {
    pub(crate) terms: LeaseTerms,
    /// What the limit itself allows at once, as it is shown.
    pub(crate) capacity: u64,
    pub(crate) grace_policy: GracePolicy,
    /// What leases leave of that, so that more can never be taken at once.
    pub(crate) cost_max: u64,
}

type LeasePage = [OnceLock<LeasedLimit>; PAGE];

/// Read without a lock by every decision; written when rules are put in force.
#[derive(Debug)]
pub(super) struct LeaseRegistry {
    pages: Box<[OnceLock<Box<LeasePage>>]>,
    ids: Lock<HashMap<LeasedLimit, u16>>,
    /// The shortest of all, which timers follow.
    lifetime_us: AtomicU64,
    quiet_us: AtomicU64,
}

impl LeaseRegistry {
    pub(super) fn new() -> Self {
        Self {
            pages: (0..PAGES).map(|_| OnceLock::new()).collect(),
            ids: Lock::new(HashMap::new()),
            lifetime_us: AtomicU64::new(u64::MAX),
            quiet_us: AtomicU64::new(u64::MAX),
        }
    }

    /// The ticket of these terms; `None` once all are given out.
    pub(super) fn register(&self, leased: &LeasedLimit) -> Option<ParamsId> {
        let mut tickets = lock(&self.ids);
        if let Some(&params_id) = tickets.get(leased) {
            return Some(ParamsId(params_id));
        }
        let params_id = tickets.len() + 1;
        let page = self.pages.get(params_id / PAGE)?;
        let page = page.get_or_init(|| Box::new([const { OnceLock::new() }; PAGE]));
        // The map holds one entry for each cell that is set, so this one is empty.
        let _ = page[params_id % PAGE].set(*leased);
        tickets.insert(*leased, params_id as u16);
        self.lifetime_us.fetch_min(leased.terms.lifetime_us, Ordering::Relaxed);
        self.quiet_us.fetch_min(leased.terms.quiet_us, Ordering::Relaxed);
        Some(ParamsId(params_id as u16))
    }

    /// The terms behind a ticket; `None` for that of a limit that is not leased.
    #[inline]
    pub(super) fn get(&self, params_id: ParamsId) -> Option<&LeasedLimit> {
        let params_id = usize::from(params_id.0);
        if params_id == 0 {
            return None;
        }
        self.pages.get(params_id / PAGE)?.get()?[params_id % PAGE].get()
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
