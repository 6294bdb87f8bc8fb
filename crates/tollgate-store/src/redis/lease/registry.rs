//! The leased limits, by id.

use crate::lease::LeaseTerms;
use crate::registry::Registry;
use crate::{GracePolicy, ParamsId};
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit that is leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeasedLimit {
    pub(crate) terms: LeaseTerms,
    /// The limit's own capacity, shown in answers.
    pub(crate) capacity: u64,
    pub(crate) grace_policy: GracePolicy,
    /// The capacity that leases leave in the store: the largest possible cost.
    pub(crate) cost_max: u64,
}

/// The leased limits, by id. When ids run out, the store decides further limits.
#[derive(Debug)]
pub(super) struct LeaseRegistry {
    limits: Registry<LeasedLimit>,
    /// The shortest lifetime of all limits, which timers follow.
    lifetime_us: AtomicU64,
    grace_us: AtomicU64,
}

impl LeaseRegistry {
    pub(super) fn new() -> Self {
        Self {
            limits: Registry::new(1 << u16::BITS),
            lifetime_us: AtomicU64::new(u64::MAX),
            grace_us: AtomicU64::new(u64::MAX),
        }
    }

    /// The id of a leased limit; `None` when all ids are used.
    pub(super) fn register(&self, leased: &LeasedLimit) -> Option<ParamsId> {
        let params_id = self.limits.register(leased)?;
        self.lifetime_us.fetch_min(leased.terms.lifetime_us, Ordering::Relaxed);
        self.grace_us.fetch_min(leased.terms.grace_us, Ordering::Relaxed);
        Some(params_id)
    }

    /// The leased limit of an id; `None` if the limit is not leased.
    #[inline]
    pub(super) fn get(&self, params_id: ParamsId) -> Option<&LeasedLimit> {
        self.limits.get(params_id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lifetime_us() == u64::MAX
    }

    pub(super) fn lifetime_us(&self) -> u64 {
        self.lifetime_us.load(Ordering::Relaxed)
    }

    pub(super) fn grace_us(&self) -> u64 {
        self.grace_us.load(Ordering::Relaxed)
    }
}
