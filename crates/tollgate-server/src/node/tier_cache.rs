//! Caches the tiers that a hash in Redis assigns.

use super::lock;
use crate::storage::Storage;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tollgate::StoreError;

/// The lifetime of an entry, also of a value without a tier.
const CACHE_TTL_US: u64 = 5_000_000;
/// The pause of all lookups after a failure. So a slow store costs one request its deadline, not
/// all of them.
const RETRY_DELAY_US: u64 = 500_000;
/// Limit of entries, because clients choose the values.
const ENTRIES_MAX: usize = 65_536;
/// Limit of a tier's name; longer than any valid one.
const NAME_BYTES_MAX: usize = 256;

/// The Redis error when the key of the hash has another type.
pub(crate) const WRONG_TYPE: &str = "WRONGTYPE";

/// The tiers looked up in the last few seconds.
#[derive(Debug, Default)]
pub struct TierCache {
    entries: Mutex<HashMap<u128, CachedTier>>,
    /// The end of the pause after a failure.
    failed_until_us: AtomicU64,
    logged_wrong_type: AtomicBool,
    hashers: [RandomState; 2],
}

#[derive(Clone, Debug)]
struct CachedTier {
    tier: Option<Arc<str>>,
    until_us: u64,
}

/// The value whose tier is looked up.
#[derive(Clone, Copy, Debug)]
pub struct TierKey<'a> {
    /// The value of the attribute, unhashed.
    pub value: &'a str,
    /// Whether the value is a secret.
    pub is_secret: bool,
}

impl<'a> TierKey<'a> {
    /// The fields of the hash that may contain the tier: the value and its hash. The hash of a
    /// secret comes first, so Redis sees the secret only if it lacks the hash. A value that looks
    /// like a hash is never a field: otherwise a client that knows a hash would get its tier.
    fn fields(self) -> Vec<Cow<'a, str>> {
        let hash = Cow::Owned(tollgate_policy::hash(self.value));
        let clear = Cow::Borrowed(self.value);
        match (self.value.starts_with(tollgate_policy::HASH_PREFIX), self.is_secret) {
            (true, _) => vec![hash],
            (false, true) => vec![hash, clear],
            (false, false) => vec![clear, hash],
        }
    }
}

impl TierCache {
    /// The tier of `who` in the hash; `None` for the default tier. If the store fails, calls
    /// `failed`, and the last known tier counts.
    pub async fn tier(
        &self,
        storage: &Storage,
        hash: &str,
        who: TierKey<'_>,
        now_us: u64,
        failed: impl FnOnce(&StoreError),
    ) -> Option<Arc<str>> {
        let name = self.cache_key(hash, who.value);
        let known = lock(&self.entries).get(&name).cloned();
        if let Some(entry) = &known
            && is_before(CACHE_TTL_US, entry.until_us, now_us)
        {
            return entry.tier.clone();
        }
        let last = known.and_then(|entry| entry.tier);
        if is_before(RETRY_DELAY_US, self.failed_until_us.load(Relaxed), now_us) {
            return last;
        }
        match storage.first_field(hash, &who.fields()).await {
            Ok(value) => {
                self.logged_wrong_type.store(false, Relaxed);
                let (tier, until_us) =
                    (value.and_then(parse_tier_name), now_us.saturating_add(CACHE_TTL_US));
                self.insert(name, CachedTier { tier: tier.clone(), until_us }, now_us);
                tier
            }
            Err(error) => {
                failed(&error);
                if &*error.detail == WRONG_TYPE && !self.logged_wrong_type.swap(true, Relaxed) {
                    tracing::error!(
                        key = hash,
                        "the Redis key of `tiers` is not a hash, so every client gets the default tier; check it with `TYPE`"
                    );
                }
                self.failed_until_us.store(now_us.saturating_add(RETRY_DELAY_US), Relaxed);
                last
            }
        }
    }

    fn insert(&self, name: u128, entry: CachedTier, now_us: u64) {
        let mut entries = lock(&self.entries);
        if entries.len() >= ENTRIES_MAX && !entries.contains_key(&name) {
            entries.retain(|_, old| now_us < old.until_us);
            // Too many clients within seconds: this one is looked up each time.
            if entries.len() >= ENTRIES_MAX {
                return;
            }
        }
        entries.insert(name, entry);
    }

    /// Two keyed hashes of 64 bits: clients cannot cause collisions, and no value is kept.
    fn cache_key(&self, hash: &str, who: &str) -> u128 {
        let [high, low] = self.hashers.each_ref().map(|hasher| hasher.hash_one((hash, who)));
        u128::from(high) << 64 | u128::from(low)
    }
}

/// Whether `until_us` is in the future, but by at most `span_us`: the clock may have been ahead
/// when it was set.
const fn is_before(span_us: u64, until_us: u64, now_us: u64) -> bool {
    now_us < until_us && until_us - now_us <= span_us
}

/// The name of a tier from the value of a field.
fn parse_tier_name(value: Vec<u8>) -> Option<Arc<str>> {
    let fits = (1..=NAME_BYTES_MAX).contains(&value.len());
    String::from_utf8(value).ok().filter(|_| fits).map(Arc::from)
}

#[cfg(test)]
mod tests;
