//! An entry of the deny cache: the row of a (limit, key) in a refused request.

use crate::engine::Rules;
use tollgate_core::{Algorithm, LimitParams, Outcome};
use tollgate_policy::policy::Selected;
use tollgate_store::Charge;

/// Limit of store calls per [`MISSES_WINDOW_US`] that a refused key may cause for uncached rows.
const MISSES_MAX: u32 = 16;
const MISSES_WINDOW_US: u64 = 1_000_000;

/// The row of a (limit, key) in the store's last answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct DenyEntry {
    pub(super) state_hash: u64,
    pub(super) generation: u64,
    pub(super) params_index: usize,
    /// Whether the charge was enforced. A shadow charge does not see blocks.
    pub(super) enforced: bool,
    pub(super) cost: u64,
    pub(super) learnt_us: u64,
    /// The time from which the entry is useless.
    pub(super) expires_us: u64,
    pub(super) outcome: Outcome,
    pub(super) blocked: bool,
    pub(super) role: EntryRole,
    /// Whether units were charged to the key since.
    pub(super) spent: bool,
    /// The time of the first store call because the entry is too old.
    pub(super) refresh_started_us: Option<u64>,
    /// Whether a request is calling the store.
    pub(super) is_refreshing: bool,
    pub(super) misses: MissBudget,
    /// The waits of other costs, latest first.
    pub(super) other_waits: [Option<CostWait>; 3],
}

/// The end of the refusal of one cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct CostWait {
    cost: u64,
    learnt_us: u64,
    /// The end; `None` if no wait helps.
    until_us: Option<u64>,
}

/// The permitted use of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryRole {
    /// The limit refuses, and the cache may refuse for it.
    Refuses,
    /// The row is shown with a refusal by another limit.
    Shows,
    /// The limit refuses, and its penalty counts refusals, so the request must reach the store.
    Counts,
}

/// The cache's answer for one charge.
#[derive(Clone, Copy, Debug)]
pub(super) enum CachedAnswer {
    /// The cache has no valid row.
    Unknown,
    /// The store must count this refusal.
    Counts,
    /// A row.
    Row(CachedRow),
}

/// A cached row, with durations that count from now.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedRow {
    pub(super) outcome: Outcome,
    pub(super) blocked: bool,
    pub(super) age_us: u64,
    /// Whether this row refuses the request.
    pub(super) refuses: bool,
    /// Whether the store would give the same answer. Otherwise the wait is an upper bound.
    pub(super) exact: bool,
}

/// The answer to one cost when the entry was learnt.
enum RememberedAnswer {
    Admitted,
    /// A refusal with this wait; `None` if no wait helps.
    RefusedFor(Option<u64>),
    /// A refusal with at most this wait.
    RefusedAtMost(u64),
}

/// Limits the store calls that a refused key may cause for rows of other limits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MissBudget {
    since_us: u64,
    count: u32,
}

impl MissBudget {
    /// Whether one more request may call the store.
    pub(super) fn take(&mut self, now_us: u64) -> bool {
        if now_us.saturating_sub(self.since_us) >= MISSES_WINDOW_US {
            *self = Self { since_us: now_us, count: 0 };
        }
        self.count += u32::from(self.count <= MISSES_MAX);
        self.count <= MISSES_MAX
    }
}

impl CachedAnswer {
    pub(super) const fn row(&self) -> Option<&CachedRow> {
        match self {
            Self::Row(row) => Some(row),
            Self::Unknown | Self::Counts => None,
        }
    }

    pub(super) fn refuses(&self) -> bool {
        self.row().is_some_and(|row| row.refuses)
    }
}

impl CachedRow {
    /// The row of a limit whose key is missing, which has no state.
    pub(super) fn of_missing(charge: &Charge<'_>, now_us: u64) -> Self {
        let intent = tollgate_core::Intent::Peek;
        let outcome = charge.params.decide(&Default::default(), now_us, charge.cost, intent);
        Self { outcome, blocked: false, age_us: 0, refuses: false, exact: true }
    }
}

impl DenyEntry {
    /// The entry's answer for this charge. The caller checks the age.
    pub(super) fn recall(
        &self,
        rules: &Rules,
        now_us: u64,
        max_age_us: u64,
        one: &Selected<'_>,
        charge: &Charge<'_>,
    ) -> CachedAnswer {
        let fits = self.generation == rules.generation()
            && self.params_index == one.params_index
            // The parameters of an inline limit have no index in the policy.
            && self.outcome.limit == charge.params.capacity()
            && self.enforced == charge.mode.is_enforced();
        let Some(age_us) = now_us.checked_sub(self.learnt_us).filter(|_| fits) else {
            return CachedAnswer::Unknown;
        };
        let mut outcome = self.outcome;
        outcome.reset_after_us = outcome.reset_after_us.saturating_sub(age_us);
        // Zero would contradict `remaining`.
        outcome.more_after_us = outcome.more_after_us.map(|us| us.saturating_sub(age_us).max(1));
        let oldest_us = now_us.saturating_sub(max_age_us);
        let met = self.past_answer(charge.params, charge.cost, oldest_us);
        let is_reset = self.is_reset(age_us);
        if is_reset {
            outcome = Outcome::admitting(self.outcome.limit);
        }
        let (wait_us, exact) = match met {
            _ if self.blocked && is_reset => return CachedAnswer::Unknown,
            RememberedAnswer::RefusedFor(None) => (None, true),
            RememberedAnswer::Admitted => (Some(0), true),
            _ if is_reset => (Some(0), true),
            // The limit may admit the cost by now.
            RememberedAnswer::RefusedFor(Some(us)) | RememberedAnswer::RefusedAtMost(us)
                if us <= age_us =>
            {
                return CachedAnswer::Unknown;
            }
            RememberedAnswer::RefusedFor(Some(us)) => (Some(us - age_us), true),
            RememberedAnswer::RefusedAtMost(us) => (Some(us - age_us), false),
        };
        outcome.admitted = wait_us == Some(0);
        outcome.retry_after_us = wait_us;
        let (refused, mut exact) = (!outcome.admitted && self.enforced, exact && !self.spent);
        match wait_us {
            // In a block, the wait, the reset and `t` are one instant.
            Some(us) if self.blocked => {
                (outcome.reset_after_us, outcome.more_after_us) = (us, Some(us));
            }
            // A cost that never fits shows the block's end, which other waits may exceed.
            None if self.blocked => exact &= self.outcome.retry_after_us.is_none(),
            _ => {}
        }
        if refused && !self.blocked && charge.penalty.is_some() {
            return CachedAnswer::Counts;
        }
        let refuses = refused && self.role == EntryRole::Refuses;
        CachedAnswer::Row(CachedRow { outcome, blocked: self.blocked, age_us, refuses, exact })
    }

    /// Whether time alone has restored the limit. A lease may not know its reset time.
    fn is_reset(&self, age_us: u64) -> bool {
        (1..=age_us).contains(&self.outcome.reset_after_us)
    }

    /// Takes over the waits of other costs from the previous entry.
    pub(super) fn inherit(&mut self, old: &Self) {
        self.misses = old.misses;
        let is_like = old.generation == self.generation
            && old.params_index == self.params_index
            && old.enforced == self.enforced
            && old.blocked == self.blocked
            && !old.outcome.admitted;
        if !is_like {
            return;
        }
        let last = CostWait {
            cost: old.cost,
            learnt_us: old.learnt_us,
            until_us: old.outcome.retry_after_us.map(|us| old.learnt_us.saturating_add(us)),
        };
        let known = [last].into_iter().chain(old.other_waits.into_iter().flatten());
        let mut others = known.filter(|wait| wait.cost != self.cost);
        self.other_waits = std::array::from_fn(|_| others.next());
    }

    /// The answer to this cost when the entry was learnt, or since `oldest_us`. `remaining` is
    /// exact, so it shows which costs were admitted.
    fn past_answer(&self, params: &LimitParams, cost: u64, oldest_us: u64) -> RememberedAnswer {
        let Outcome { admitted, limit, remaining, retry_after_us, reset_after_us, .. } =
            self.outcome;
        let is_same = cost == self.cost && !admitted;
        let mut known = self.other_waits.iter().flatten();
        let known = known.find(|wait| wait.cost == cost && wait.learnt_us > oldest_us);
        match (self.outcome.more_after_us, params) {
            _ if !self.blocked && (cost == 0 || cost <= remaining) => RememberedAnswer::Admitted,
            _ if cost > limit => RememberedAnswer::RefusedFor(None),
            _ if is_same => RememberedAnswer::RefusedFor(retry_after_us),
            (Some(us), _) if !self.blocked && cost == remaining.saturating_add(1) => {
                RememberedAnswer::RefusedFor(Some(us))
            }
            (_, LimitParams::FixedWindow(_) | LimitParams::CalendarWindow(_)) if !self.blocked => {
                RememberedAnswer::RefusedFor(Some(reset_after_us))
            }
            _ if known.is_some() => RememberedAnswer::RefusedFor(known.and_then(|wait| {
                wait.until_us.map(|until_us| until_us.saturating_sub(self.learnt_us))
            })),
            _ => RememberedAnswer::RefusedAtMost(reset_after_us.max(retry_after_us.unwrap_or(0))),
        }
    }
}
