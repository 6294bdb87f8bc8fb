//! The keys of a limit: how often each was refused, since when and for how long.

use rustc_hash::FxHashMap;
use tollgate::engine::{HttpPolicy, Row, limit::Limit};
use tollgate_policy::facts::{Facts, digest};

/// The most keys of one limit that are counted separately.
const KEYS_MAX: usize = 1 << 20;

/// The keys of one limit, by the hash in rows.
#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    by_key: FxHashMap<u64, KeyCount>,
    /// The number of keys dropped to make room: those never refused first, then those refused
    /// least.
    dropped: u64,
}

/// The counts of one key.
#[derive(Debug, Default)]
struct KeyCount {
    admitted: u64,
    refusals: Option<Box<Refusals>>,
}

/// The refusals of one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// The key, such as `user=42`.
    pub(crate) key: String,
    pub(crate) refused: u64,
    pub(crate) first_us: u64,
    pub(crate) last_us: u64,
    /// The total time in which requests would have been refused.
    pub(crate) limited_us: u64,
    until_us: u64,
}

/// A key with refusals, and its counts.
#[derive(Clone, Debug)]
pub(crate) struct RefusedKey<'t> {
    pub(crate) admitted: u64,
    pub(crate) refusals: &'t Refusals,
}

impl KeyTable {
    /// Counts one decision. `key` is called at the first refusal to format the key.
    #[inline]
    pub(crate) fn count(&mut self, time_us: u64, row: &Row<'_>, key: impl FnOnce() -> String) {
        if self.by_key.len() >= KEYS_MAX && !self.by_key.contains_key(&row.bucket) {
            self.make_room();
        }
        let count = self.by_key.entry(row.bucket).or_default();
        if row.outcome.admitted {
            count.admitted += 1;
            return;
        }
        let refusals = count.refusals.get_or_insert_with(|| {
            Box::new(Refusals { key: key(), first_us: time_us, ..Refusals::default() })
        });
        refusals.refused += 1;
        refusals.last_us = refusals.last_us.max(time_us);
        let until_us = time_us.saturating_add(row.outcome.retry_after_us.unwrap_or(0));
        if until_us > refusals.until_us {
            refusals.limited_us += until_us - refusals.until_us.max(time_us);
            refusals.until_us = until_us;
        }
    }

    /// The number of keys, and whether some may have been counted twice.
    pub(crate) fn len(&self) -> (u64, bool) {
        (self.by_key.len() as u64 + self.dropped, self.dropped > 0)
    }

    /// Returns the refused keys, in the order of their first refusals.
    pub(crate) fn refused(&self) -> Vec<RefusedKey<'_>> {
        let mut keys: Vec<RefusedKey<'_>> = self
            .by_key
            .values()
            .filter_map(|count| {
                let refusals = count.refusals.as_deref()?;
                Some(RefusedKey { admitted: count.admitted, refusals })
            })
            .collect();
        keys.sort_by(|a, b| {
            let order = |key: &RefusedKey<'_>| {
                (key.refusals.first_us, std::cmp::Reverse(key.refusals.refused))
            };
            order(a).cmp(&order(b)).then_with(|| a.refusals.key.cmp(&b.refusals.key))
        });
        keys
    }

    /// Drops keys that were never refused. If too many are left, also drops those with the fewest
    /// refusals.
    #[cold]
    fn make_room(&mut self) {
        let before = self.by_key.len();
        self.by_key.retain(|_, count| count.refusals.is_some());
        if self.by_key.len() > KEYS_MAX / 2 {
            // Keeps the keys with more refusals than the median.
            let mut refused: Vec<u64> = self.by_key.values().map(refused_times).collect();
            let middle = refused.len() / 2;
            let (_, median, _) = refused.select_nth_unstable(middle);
            let median = *median;
            self.by_key.retain(|_, count| refused_times(count) > median);
        }
        self.dropped += (before - self.by_key.len()) as u64;
    }
}

fn refused_times(count: &KeyCount) -> u64 {
    count.refusals.as_ref().map_or(0, |refusals| refusals.refused)
}

/// Formats the key of a limit for these facts, such as `user=42`. Secrets are shown as digests.
pub(crate) fn shown_key(limit: &Limit, facts: &Facts<'_>, http: &HttpPolicy) -> String {
    let names = limit.key_used(|name| facts.get(name).is_some());
    if names.is_empty() {
        return "everybody".into();
    }
    let part = |name: &str| match facts.get(name) {
        None => format!("{name} missing"),
        Some(value) if name == "api_key" => {
            format!("{name}=~{}", value.get(..16).unwrap_or(&value))
        }
        Some(value) if http.holds_secret(name) => {
            format!("{name}=~{}", digest(&value).get(..16).unwrap_or_default())
        }
        Some(value) => format!("{name}={}", shortened(&value)),
    };
    names.iter().map(|name| part(name)).collect::<Vec<_>>().join(" ")
}

/// Shortens a value, which may be as long as a line.
fn shortened(value: &str) -> String {
    let mut short: String = value.chars().take(120).collect();
    if short.len() < value.len() {
        short.push_str("...");
    }
    short
}
