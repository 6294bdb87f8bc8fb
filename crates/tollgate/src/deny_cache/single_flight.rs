//! Single flight: one request calls the store about an outdated refusal; others do not.
//!
//! The others are refused until that request is answered, but for at most [`STALE_US_MAX`] after
//! the first call. The answer replaces the entry or removes it. If the call fails or is dropped,
//! the next request calls. An entry whose wait has passed refuses no request, because the store
//! would admit.

use super::entry::DenyEntry;
use super::{DenyCache, lock};
use smallvec::SmallVec;

/// The longest time for which an outdated entry refuses others.
const STALE_US_MAX: u64 = 100_000;

/// A request that calls the store for outdated entries. Dropping this lets another request call.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight<'c> {
    cache: Option<&'c DenyCache>,
    /// The shard and the name of each entry.
    entries: SmallVec<[(usize, u128); 1]>,
}

/// The role of a request that meets an outdated entry.
pub(super) enum FlightRole {
    /// Calls the store, also for the others.
    Leader,
    /// Is refused while the leader calls.
    Follower,
    /// Calls the store, because the leader has had no answer for too long.
    TimedOut,
}

impl DenyEntry {
    pub(super) fn flight_role(&mut self, now_us: u64) -> FlightRole {
        let first_us = *self.refresh_started_us.get_or_insert(now_us);
        if now_us.saturating_sub(first_us) >= STALE_US_MAX {
            return FlightRole::TimedOut;
        }
        let is_refreshing = std::mem::replace(&mut self.is_refreshing, true);
        if is_refreshing { FlightRole::Follower } else { FlightRole::Leader }
    }
}

impl<'c> SingleFlight<'c> {
    pub(super) fn add(&mut self, cache: &'c DenyCache, shard: usize, name: u128) {
        self.cache = Some(cache);
        self.entries.push((shard, name));
    }

    /// Whether this request leads for the entry.
    pub(super) fn is_for(&self, shard: usize, name: u128) -> bool {
        self.entries.contains(&(shard, name))
    }

    /// Takes over the entries of another flight.
    pub(super) fn merge(&mut self, mut other: Self) {
        self.cache = self.cache.or(other.cache);
        self.entries.extend(other.entries.drain(..));
    }

    /// Removes the entries that the store's answer did not replace.
    pub(crate) fn complete(mut self) {
        self.end(|cache, shard, name| {
            let mut shard = lock(&cache.shards[shard]);
            if shard.entries.get(&name).is_some_and(|entry| entry.is_refreshing) {
                shard.forget(name);
            }
        });
    }

    fn end(&mut self, each: impl Fn(&DenyCache, usize, u128)) {
        if let Some(cache) = self.cache {
            self.entries.drain(..).for_each(|(shard, name)| each(cache, shard, name));
        }
    }
}

impl Drop for SingleFlight<'_> {
    fn drop(&mut self) {
        self.end(|cache, shard, name| {
            if let Some(entry) = lock(&cache.shards[shard]).entries.get_mut(&name) {
                entry.is_refreshing = false;
            }
        });
    }
}
