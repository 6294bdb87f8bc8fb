//! Top keys: the keys of each limit with the most units, over the last minute and hour.
//!
//! Units are ranked by four measures: admitted, refused, near the limit, and shadow-refused. Each
//! thread counts in a shard of its own, which costs 175 instructions. The shards are emptied into
//! the windows every ten seconds, and when an operator asks. Memory is bounded: at most
//! `SUMMARIES_MAX` summaries of at most 14 slots, and a slot has at most 128 keys of 128 bytes. A
//! shard has at most `SUMMARIES_MAX` limits.

mod fleet;
mod shard;
mod shed;
mod summary;
mod view;
mod windows;

pub use fleet::FleetTop;
pub use shed::CountedRequest;
pub use view::{TopQuery, TopView};
pub use windows::TopWindow;

use ahash::RandomState;
use shard::Shard;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, TryLockError};
use summary::{HeavyKey, LastFigures};
use tollgate::engine::{ObservedDecision, thread_number};
use tollgate_core::Outcome;
use tollgate_net::lock;
use tollgate_policy::policy::Selected;
use windows::WindowedSummary;

/// Limit of summaries: one per limit and measure with traffic in the last hour.
const SUMMARIES_MAX: usize = 128;
/// The interval at which shards are emptied without a reader.
const COLLECT_EVERY_US: u64 = 10_000_000;
/// A key is near its limit if it has used more than four fifths.
const NEAR_FIFTHS: u64 = 5;

/// The measure that ranks keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopMeasure {
    /// Units admitted.
    Admitted,
    /// Units refused.
    Refused,
    /// Units admitted while more than 80 % of the limit was used.
    Near,
    /// Units that a limit in shadow mode would have refused.
    Shadow,
    /// Units counted as admitted, of requests that were shed afterwards.
    ShedAdmitted,
    /// Units counted as near, of requests that were shed afterwards.
    ShedNear,
}

impl TopMeasure {
    /// The measures that operators can ask for.
    pub const ALL: [Self; 4] = [Self::Admitted, Self::Refused, Self::Near, Self::Shadow];
    /// The measures that are counted: [`ALL`](Self::ALL), and those subtracted from it.
    const COUNTED: [Self; 6] = [
        Self::Admitted,
        Self::Refused,
        Self::Near,
        Self::Shadow,
        Self::ShedAdmitted,
        Self::ShedNear,
    ];

    /// The name in queries and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Near => "near",
            Self::Shadow => "shadow",
            Self::ShedAdmitted => "shed_admitted",
            Self::ShedNear => "shed_near",
        }
    }

    /// The measure that also counts these units if the key is near its limit.
    const fn near(self) -> Option<Self> {
        match self {
            Self::Admitted => Some(Self::Near),
            Self::ShedAdmitted => Some(Self::ShedNear),
            _ => None,
        }
    }

    /// The measure that is subtracted from this one.
    const fn taken_off(self) -> Option<Self> {
        match self {
            Self::Admitted => Some(Self::ShedAdmitted),
            Self::Near => Some(Self::ShedNear),
            _ => None,
        }
    }
}

/// The top keys of a node.
pub struct TopKeys {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    limits: Mutex<TrackedLimits>,
    collected_us: AtomicU64,
    /// Decisions in no summary: of limits above the cap, or made while a shard was emptied.
    missed: AtomicU64,
}

#[derive(Debug, Default)]
struct TrackedLimits {
    by_name: BTreeMap<Box<str>, [Option<WindowedSummary>; TopMeasure::COUNTED.len()]>,
    summaries: usize,
}

/// Counts the keys of one request in a shard.
struct RequestCounter<'t, 'k> {
    top: &'t TopKeys,
    /// `None` while the shard is emptied.
    shard: Option<MutexGuard<'t, Shard>>,
    /// The last key that was hashed, its index and its hash.
    hashed: Option<(&'k [u8], usize, u64)>,
}

/// The top keys of one limit.
#[derive(Debug)]
struct TopOfLimit {
    /// The name of the limit.
    limit: Box<str>,
    /// The limit's keys, heaviest first.
    keys: Vec<HeavyKey>,
    /// The units of all keys.
    total_units: u64,
    /// The most units of any key outside `keys`.
    unlisted_max: u64,
}

impl Default for TopKeys {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            // Two more than worker threads: the admin front end and the control thread decide too.
            shards: (0..threads + 2).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            limits: Mutex::default(),
            collected_us: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        }
    }
}

impl TopKeys {
    /// Counts the decisions of one request. Never waits.
    #[inline]
    pub fn count(&self, decisions: &[ObservedDecision<'_>]) {
        let mut counter = self.counter();
        for ObservedDecision { selected, outcome, asked, taken, refuses, now_us, .. } in decisions {
            let (measure, units) = match (refuses, outcome.admitted) {
                (true, _) => (TopMeasure::Refused, *asked),
                (false, false) => (TopMeasure::Shadow, *asked),
                (false, true) => (TopMeasure::Admitted, *taken),
            };
            if units > 0 && !selected.missing {
                counter.add(*now_us, selected, outcome, units, measure);
            }
        }
    }

    /// Locks the shard of this thread for one request.
    #[inline]
    fn counter(&self) -> RequestCounter<'_, '_> {
        let shard = match self.shards[thread_number() % self.shards.len()].try_lock() {
            Ok(shard) => Some(shard),
            // After a panic the counts are still complete.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        RequestCounter { top: self, shard, hashed: None }
    }

    /// Empties the shards into the windows if the last time is long enough ago. Call it from a
    /// timer.
    pub fn tick(&self, now_us: u64) {
        let is_due = now_us / COLLECT_EVERY_US > self.collected_us.load(Relaxed) / COLLECT_EVERY_US;
        if is_due {
            drop(self.collect(now_us));
        }
    }

    fn collect(&self, now_us: u64) -> MutexGuard<'_, TrackedLimits> {
        let mut limits = lock(&self.limits);
        // Shards hold the counts since the last collection, at most one slot ago.
        let since_us = self.collected_us.swap(now_us, Relaxed);
        let counted_us = since_us.clamp(now_us.saturating_sub(COLLECT_EVERY_US), now_us);
        limits.expire(now_us);
        for shard in &self.shards {
            // Taken under the lock but merged without it, so the lock is never held for long.
            let taken = std::mem::take(&mut *lock(shard));
            for (name, summaries) in taken.into_limits() {
                for (measure, summary) in summaries {
                    if !limits.add(counted_us, &name, measure, &summary) {
                        self.missed.fetch_add(1, Relaxed);
                    }
                }
            }
        }
        limits
    }

    /// The keys by a measure, of one limit or of all limits with keys, sorted by name.
    fn read(
        &self,
        now_us: u64,
        measure: TopMeasure,
        window: TopWindow,
        limit: Option<&str>,
    ) -> Vec<TopOfLimit> {
        let limits = self.collect(now_us);
        let wanted =
            limits.by_name.iter().filter(|(name, _)| limit.is_none_or(|one| ***name == *one));
        wanted
            .filter_map(|(name, measures)| {
                let summary = measures[measure as usize].as_ref()?.read(window);
                let off = measure.taken_off().and_then(|off| measures[off as usize].as_ref());
                let (keys, total_units) = match off {
                    Some(off) => shed::take_off(&summary, &off.read(window)),
                    None => (summary.keys(), summary.total_units()),
                };
                let (limit, unlisted_max) = (name.clone(), summary.floor());
                (total_units > 0).then_some(TopOfLimit { limit, keys, total_units, unlisted_max })
            })
            .collect()
    }

    /// Calls `see` with every tracked key and its limit, until `see` returns true.
    fn find(&self, now_us: u64, mut see: impl FnMut(&str, &HeavyKey) -> bool) {
        let limits = self.collect(now_us);
        for (name, measures) in &limits.by_name {
            for summary in measures.iter().flatten() {
                let keys = summary.read(TopWindow::Hour).keys();
                if keys.iter().any(|key| see(name, key)) {
                    return;
                }
            }
        }
    }

    /// Decisions in no summary, since the start.
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }
}

impl<'k> RequestCounter<'_, 'k> {
    /// Adds units to a key under `measure`, and under its near measure if the key is near its
    /// limit.
    #[inline(always)]
    fn add(
        &mut self,
        now_us: u64,
        selected: &Selected<'k>,
        outcome: &Outcome,
        units: u64,
        measure: TopMeasure,
    ) {
        let hash = self.hash(selected);
        let shard = self.shard.as_mut();
        let Some(limit) = shard.and_then(|it| it.limit(selected.id, &selected.limit.name)) else {
            self.top.missed.fetch_add(1, Relaxed);
            return;
        };
        let (capacity, remaining) = (outcome.limit, outcome.remaining);
        let last = LastFigures { time_us: now_us, capacity, remaining };
        let key = (selected.key_index, selected.key);
        limit.summary(measure).add(hash, key, units, last);
        let is_near = remaining.saturating_mul(NEAR_FIFTHS) < capacity;
        if is_near && let Some(near) = measure.near() {
            limit.summary(near).add(hash, key, units, last);
        }
    }

    /// The hash of a key. Limits of one request with equal keys share the hash.
    #[inline]
    fn hash(&mut self, selected: &Selected<'k>) -> u64 {
        let Selected { key, key_index, .. } = *selected;
        match self.hashed {
            Some((known, index, hash)) if index == key_index && ptr::eq(known, key) => hash,
            _ => {
                let hash = self.top.hasher.hash_one((key_index, key));
                self.hashed = Some((key, key_index, hash));
                hash
            }
        }
    }
}

impl TrackedLimits {
    /// Adds a summary, unless the cap is reached.
    fn add(
        &mut self,
        now_us: u64,
        name: &str,
        measure: TopMeasure,
        summary: &summary::Summary,
    ) -> bool {
        let is_known = |known: &[Option<WindowedSummary>; TopMeasure::COUNTED.len()]| {
            known[measure as usize].is_some()
        };
        if !self.by_name.get(name).is_some_and(is_known) {
            if self.summaries >= SUMMARIES_MAX {
                return false;
            }
            self.summaries += 1;
        }
        let measures = self.by_name.entry(name.into()).or_default();
        measures[measure as usize].get_or_insert_default().add(now_us, summary);
        true
    }

    /// Drops limits and measures without traffic in the last hour.
    fn expire(&mut self, now_us: u64) {
        for measures in self.by_name.values_mut() {
            for slot in measures.iter_mut() {
                if slot.as_mut().is_some_and(|windows| !windows.expire(now_us)) {
                    *slot = None;
                    self.summaries -= 1;
                }
            }
        }
        self.by_name.retain(|_, measures| measures.iter().any(Option::is_some));
    }
}

impl std::fmt::Debug for TopKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TopKeys").field("missed", &self.missed()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
