//! The sustained rate of a limit, summed over its keys.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// The most keys that are counted separately; with more, the rate is not drawn.
const KEYS_MAX: usize = 1 << 20;

/// A number of units, and a time in microseconds.
pub(super) type Rate = (u64, u64);

/// The keys of one limit, each with its rate.
#[derive(Debug, Default)]
pub(crate) struct KeyRates {
    /// Rates by a hash of the key that is keyed already.
    by_key: FxHashMap<u64, Rate>,
    is_full: bool,
}

impl KeyRates {
    /// Records a key and its current rate, since its tier may have changed.
    pub(super) fn note(&mut self, key: u64, rate: Rate) {
        let has_room = self.by_key.len() < KEYS_MAX;
        match self.by_key.entry(key) {
            Entry::Occupied(mut known) => *known.get_mut() = rate,
            Entry::Vacant(place) if has_room => _ = place.insert(rate),
            Entry::Vacant(_) => self.is_full = true,
        }
    }

    /// The number of keys.
    pub(super) fn keys(&self) -> usize {
        self.by_key.len()
    }

    /// The units that all keys together may use in `width_us`, in fractions `1 / scale` of a unit.
    /// `None` if a rate is unknown.
    pub(super) fn total(&self, width_us: u64, scale: u64) -> Option<u128> {
        let mut keys_by_rate: BTreeMap<Rate, u128> = BTreeMap::new();
        for rate in self.by_key.values() {
            *keys_by_rate.entry(*rate).or_default() += 1;
        }
        let known = !self.is_full && !keys_by_rate.is_empty();
        let parts = |((count, period_us), keys): (Rate, u128)| {
            let product = u128::from(count) * u128::from(width_us);
            product.saturating_mul(u128::from(scale)).saturating_mul(keys)
                / u128::from(period_us.max(1))
        };
        known.then(|| keys_by_rate.into_iter().map(parts).fold(0, u128::saturating_add))
    }
}
