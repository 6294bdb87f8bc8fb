//! Batches: several cache misses at once instead of one after the other.

use super::address::Address;
use super::decide::Full;
use super::shard::Shard;
use super::{MemoryStore, Padded};
use crate::raw::prefetch::prefetch;
use crate::sync::{MutexGuard, lock, try_lock};
use crate::{Answers, Charge, Request};

/// Requests looked at together.
const TOGETHER: usize = 16;

impl MemoryStore {
    /// Answers `requests` in order.
    #[inline]
    pub(super) fn decide_batch(
        &self,
        now_us: u64,
        requests: &[Request<'_>],
        answers: &mut Answers,
    ) {
        match requests {
            [request] => self.decide_request(now_us, request, answers),
            requests => self.decide_groups(now_us, requests, answers),
        }
    }

    // Not inlined: a single request would have to clear the stack for a batch.
    #[inline(never)]
    fn decide_groups(&self, now_us: u64, requests: &[Request<'_>], answers: &mut Answers) {
        for group in requests.chunks(TOGETHER) {
            self.decide_group(now_us, group, answers);
        }
    }

    #[inline]
    fn decide_request(&self, now_us: u64, request: &Request<'_>, answers: &mut Answers) {
        match request.charges {
            [charge] => self.decide_one(now_us, charge, request.intent, answers),
            charges => self.decide_many(now_us, charges, request.intent, answers),
        }
    }

    /// Asks for the cells of a whole group before it decides the first. Requests with one charge are decided under locks taken together:
    /// the first is waited for, the others are only tried, so that nobody waits while holding a lock. Whichever cannot be had at once
    /// begins the next run, hence the order is kept even where one key comes twice.
    fn decide_group(&self, now_us: u64, group: &[Request<'_>], answers: &mut Answers) {
        let mut addresses = [Address { shard: 0, tag: 0 }; TOGETHER];
        for (address, request) in addresses.iter_mut().zip(group) {
            if let [charge, ..] = request.charges {
                *address = self.addresses.of(charge.limit, charge.key);
                prefetch::<Padded>(&self.shards[address.shard]);
            }
        }
        let mut next = 0;
        while next < group.len() {
            let mut guards = [const { None }; TOGETHER];
            let held = self.lock_run(&group[next..], &addresses[next..], &mut guards);
            if held == 0 {
                self.decide_request(now_us, &group[next], answers);
                next += 1;
                continue;
            }
            for (n, guard) in guards.iter_mut().enumerate().take(held) {
                let (Some(mut shard), [charge]) = (guard.take(), group[next].charges) else {
                    break;
                };
                let (address, intent) = (addresses[next], group[next].intent);
                next += 1;
                let decided =
                    self.decide_in(&mut shard, address.tag, charge, now_us, intent, answers);
                drop(shard);
                if let Err(Full) = decided {
                    // The overflow cell may be in any shard, so all locks are let go first.
                    guards.iter_mut().skip(n).for_each(|guard| *guard = None);
                    self.decide_overflowing(address, charge, now_us, intent, answers);
                    break;
                }
            }
        }
    }

    /// Locks the shards of as many leading requests with one charge as can be had without waiting for any but the first.
    fn lock_run<'a>(
        &'a self,
        group: &[Request<'_>],
        addresses: &[Address],
        guards: &mut [Option<MutexGuard<'a, Shard>>; TOGETHER],
    ) -> usize {
        let mut held = 0;
        for ((request, address), guard) in group.iter().zip(addresses).zip(guards) {
            let [charge] = request.charges else { break };
            let shard = &self.shards[address.shard].0;
            let locked = if held == 0 { Some(lock(shard)) } else { try_lock(shard) };
            let Some(locked) = locked else { break };
            locked.prefetch(charge, address.tag);
            *guard = Some(locked);
            held += 1;
        }
        held
    }
}

impl Shard {
    /// Starts fetching the cell that a search for `tag` looks at first.
    #[inline]
    pub(super) fn prefetch(&self, charge: &Charge<'_>, tag: u64) {
        if super::shard::is_wide(charge.numbers) {
            self.two.first(tag).into_iter().for_each(prefetch);
        } else {
            self.one.first(tag).into_iter().for_each(prefetch);
        }
    }
}
