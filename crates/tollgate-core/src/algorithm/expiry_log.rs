//! The expiry log of sliding log and concurrency: units and the instants at which they expire.

use crate::{Intent, MAX_US, Outcome};
use alloc::collections::VecDeque;

/// Entries `(end_us, units)`, sorted by end. Units with equal ends share one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpiryLog {
    entries: VecDeque<(u64, u64)>,
    total: u64,
    /// The latest instant counted. Earlier instants are clamped to it.
    latest_us: u64,
}

/// The instants of one decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instants {
    /// The caller's instant.
    pub(crate) now_us: u64,
    /// The counted instant: the caller's, or the log's latest instant if that is later.
    pub(crate) counted_us: u64,
    /// The latest instant at which an entry may end.
    pub(crate) last_end_us: u64,
}

impl ExpiryLog {
    /// The entries, sorted by end.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.entries.iter().copied()
    }

    /// The heap bytes, without the struct itself.
    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(u64, u64)>()
    }

    /// The number of entries. Ended entries are included until the next charge.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The latest instant counted.
    pub const fn latest_us(&self) -> u64 {
        self.latest_us
    }

    /// Merges the two earliest entries at the later end, to save memory. The merged log can only
    /// refuse more.
    pub fn merge_two_earliest(&mut self) {
        if self.entries.len() >= 2
            && let Some((_, units)) = self.entries.pop_front()
            && let Some(next) = self.entries.front_mut()
        {
            next.1 = next.1.saturating_add(units).min(MAX_US);
        }
    }

    /// The units that have not ended at `counted_us`.
    pub(crate) fn live(&self, counted_us: u64) -> u64 {
        let ended = self.entries.iter().take_while(|entry| entry.0 <= counted_us);
        self.total.saturating_sub(ended.fold(0, |sum: u64, entry| sum.saturating_add(entry.1)))
    }

    /// Decides `cost` units that would end at `new_end_us`. Durations start at the caller's
    /// instant.
    pub(crate) fn decide(
        &self,
        limit: u64,
        at: Instants,
        cost: u64,
        intent: Intent,
        new_end_us: u64,
    ) -> Outcome {
        let live = self.live(at.counted_us);
        let admitted = cost == 0 || live.saturating_add(cost) <= limit;
        let taken = if admitted && intent == Intent::Take { cost } else { 0 };
        let after = live + taken;
        let remaining = limit.saturating_sub(after);
        let until = |end_us: u64| end_us.min(at.last_end_us).saturating_sub(at.now_us);
        // Returns the time until at least `units` have ended.
        let ended_after = |units: u64| {
            let mut left = units;
            for &(end_us, units) in self.entries.iter().skip_while(|e| e.0 <= at.counted_us) {
                left = left.saturating_sub(units);
                if left == 0 {
                    return until(end_us);
                }
            }
            until(new_end_us)
        };
        let newest_us = self.entries.back().map_or(0, |entry| entry.0);
        let newest_us = if taken > 0 { newest_us.max(new_end_us) } else { newest_us };
        Outcome {
            admitted,
            limit,
            remaining,
            retry_after_us: if admitted {
                Some(0)
            } else {
                (cost <= limit).then(|| ended_after(live.saturating_add(cost) - limit))
            },
            reset_after_us: until(if after > 0 { newest_us } else { at.counted_us }),
            delay_us: 0,
            more_after_us: (remaining < limit)
                .then(|| ended_after(after.saturating_add(remaining + 1) - limit)),
        }
    }

    /// Drops entries that ended by `counted_us`, then adds `units` that end at `end_us`.
    pub(crate) fn add(&mut self, counted_us: u64, end_us: u64, units: u64) {
        self.latest_us = self.latest_us.max(counted_us);
        while let Some(&(ended_us, units)) = self.entries.front()
            && ended_us <= counted_us
        {
            self.entries.pop_front();
            self.total = self.total.saturating_sub(units);
        }
        let units = units.min(MAX_US - self.total.min(MAX_US));
        if units == 0 {
            return;
        }
        self.total += units;
        let at = self.entries.partition_point(|entry| entry.0 < end_us);
        match self.entries.get_mut(at) {
            Some(entry) if entry.0 == end_us => entry.1 += units,
            _ => self.entries.insert(at, (end_us, units)),
        }
    }

    /// Removes `units` from the entry that ends at `end_us`, unless that instant has passed.
    pub(crate) fn remove(&mut self, now_us: u64, end_us: u64, units: u64) {
        if end_us <= now_us {
            return;
        }
        let at = self.entries.partition_point(|entry| entry.0 < end_us);
        if let Some(entry) = self.entries.get_mut(at)
            && entry.0 == end_us
        {
            let units = units.min(entry.1);
            entry.1 -= units;
            self.total -= units;
            if entry.1 == 0 {
                self.entries.remove(at);
            }
        }
    }

    /// Clamps instants to `latest_us` and `last_end_us`, and keeps the counts. Returns whether
    /// anything changed.
    pub(crate) fn redate(&mut self, latest_us: u64, last_end_us: u64) -> bool {
        let mut late = 0_u64;
        while let Some(&(end_us, units)) = self.entries.back()
            && end_us > last_end_us
        {
            late += units;
            self.entries.pop_back();
        }
        if late > 0 {
            match self.entries.back_mut() {
                Some(entry) if entry.0 == last_end_us => entry.1 += late,
                _ => self.entries.push_back((last_end_us, late)),
            }
        }
        let leapt = self.latest_us > latest_us;
        self.latest_us = self.latest_us.min(latest_us);
        leapt || late > 0
    }

    pub(crate) fn idle_at_us(&self) -> u64 {
        self.entries.back().map_or(0, |entry| entry.0).max(self.latest_us)
    }
}
