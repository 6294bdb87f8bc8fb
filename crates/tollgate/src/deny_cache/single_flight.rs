//! One request asks the store about a refusal that is too old, and others need not.
//!
//! What holds: of the requests that meet an entry that is too old, one is on its way to the store
//! at a time, and the others are refused as before until it has been answered, for [`STALE_US_MAX`]
//! at most, counted from when the first of them left. Whatever becomes of that one, nobody is
//! refused for longer by what is old: an answer replaces the entry or ends it, and one that fails
//! or goes away makes room for the next. An entry whose own time has passed refuses nobody, since
//! the store would admit then.

use super::entry::DenyEntry;
use super::{DenyCache, lock};
use smallvec::SmallVec;

/// How long others are refused by an entry that is too old, at most.
const STALE_US_MAX: u64 = 100_000;

/// A request on its way to the store, for entries that were too old. Makes room for another when it
/// is dropped.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight<'c> {
    cache: Option<&'c DenyCache>,
    /// Shards, and names in them.
    entries: SmallVec<[(usize, u128); 1]>,
}

/// What a request does about an entry that is too old.
pub(super) enum FlightRole {
    /// Asks the store, for the others too.
    Leader,
    /// Is refused, while another asks.
    Follower,
    /// Asks the store like everybody else: nobody was answered for too long.
    TimedOut,
}

impl DenyEntry {
    pub(super) fn flight_role(&mut self, now_us: u64) -> FlightRole {
        let first_us = *self.refresh_started_us.get_or_insert(now_us);
        if now_us.saturating_sub(first_us) >= STALE_US_MAX {
            return FlightRole::TimedOut;
        }
        match std::mem::replace(&mut self.is_refreshing, true) {
            true => FlightRole::Follower,
            false => FlightRole::Leader,
        }
    }
}

impl<'c> SingleFlight<'c> {
    pub(super) fn add(&mut self, cache: &'c DenyCache, shard: usize, name: u128) {
        self.cache = Some(cache);
        self.entries.push((shard, name));
    }

    /// Whether it asks about this entry already.
    pub(super) fn is_for(&self, shard: usize, name: u128) -> bool {
        self.entries.contains(&(shard, name))
    }

    /// Takes over those of another.
    pub(super) fn merge(&mut self, mut other: Self) {
        self.cache = self.cache.or(other.cache);
        self.entries.extend(other.entries.drain(..));
    }

    /// The store answered, and what it refused has been learnt: entries that were not replaced hold
    /// no longer.
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
