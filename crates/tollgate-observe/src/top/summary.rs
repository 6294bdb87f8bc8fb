//! Summary: the keys with the most units of a stream, in bounded memory.
//!
//! This is Space-Saving (Metwally, Agrawal, El Abbadi 2005) in sets, as in a CPU cache. The hash of
//! a key selects one of 16 sets, and each set keeps 8 keys. A new key takes over the cell and the
//! units of the key with the fewest units. So an update reads at most 8 cells. For a key with `n`
//! true units:
//!
//! * kept with `units` and `error`: `units - error <= n <= units`;
//! * not kept: `n <= floor` of its set.
//!
//! Without an eviction all counts are exact. An eviction replaces the least of 8 counts, so an
//! error is at most an eighth of the units of its set. A set has a sixteenth of the stream unless
//! heavy keys share it. The hash is keyed, so no client can make keys share a set.

/// Sets of a summary, a power of two.
const SETS: usize = 16;
/// Keys per set.
const WAYS: usize = 8;
/// Limit of a key; longer keys are counted, but their bytes are not kept.
pub(super) const KEY_BYTES_MAX: usize = 128;

/// The keys with the most units.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    sets: Box<[KeySet; SETS]>,
    total_units: u64,
}

#[derive(Clone, Debug, Default)]
struct KeySet {
    /// Separate from the other fields, so that a lookup reads one cache line. Zero marks a free
    /// cell.
    hashes: [u64; WAYS],
    units: [u64; WAYS],
    errors: [u64; WAYS],
    keys: [TrackedKey; WAYS],
    /// The most units of any key outside the set.
    floor: u64,
}

/// A key, and the limit's numbers at its last decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackedKey {
    /// The key's bytes; empty for a key of more than [`KEY_BYTES_MAX`].
    pub(super) bytes: Vec<u8>,
    pub(super) key_index: u32,
    pub(super) last: LastFigures,
}

/// The numbers of the limit's last answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastFigures {
    pub(super) time_us: u64,
    pub(super) capacity: u64,
    pub(super) remaining: u64,
}

/// One key of a summary, with bounds for its units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeavyKey {
    pub(super) hash: u64,
    /// Upper bound of the units.
    pub(super) units: u64,
    /// `units - error` is the lower bound.
    pub(super) error: u64,
    pub(super) key: TrackedKey,
}

impl Summary {
    /// Counts units of a key. `hash` is keyed; a hash of zero becomes one.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        hash: u64,
        (key_index, bytes): (usize, &[u8]),
        units: u64,
        last: LastFigures,
    ) {
        let hash = hash.max(1);
        self.total_units = self.total_units.saturating_add(units);
        let set = &mut self.sets[hash as usize % SETS];
        let way = match set.hashes.iter().position(|known| *known == hash) {
            Some(way) => {
                set.units[way] = set.units[way].saturating_add(units);
                way
            }
            None => set.add_key(hash, key_index, bytes, units),
        };
        set.keys[way].last = last;
    }

    /// Adds another summary with the same hash function. Errors add up.
    pub(super) fn merge(&mut self, other: &Self) {
        self.total_units = self.total_units.saturating_add(other.total_units);
        for (set, other) in self.sets.iter_mut().zip(&*other.sets) {
            set.merge(other);
        }
    }

    /// The keys, most units first.
    pub(super) fn keys(&self) -> Vec<HeavyKey> {
        let mut keys: Vec<HeavyKey> = self.sets.iter().flat_map(KeySet::keys).collect();
        keys.sort_by(|a, b| b.units.cmp(&a.units).then(a.hash.cmp(&b.hash)));
        keys
    }

    /// The most units of any key outside [`keys`](Self::keys).
    pub(super) fn floor(&self) -> u64 {
        self.sets.iter().map(|set| set.floor).max().unwrap_or_default()
    }

    /// The units of all keys.
    pub(super) fn total_units(&self) -> u64 {
        self.total_units
    }
}

impl KeySet {
    /// Adds a key to the set. Returns its cell.
    #[inline(never)]
    fn add_key(&mut self, hash: u64, key_index: usize, bytes: &[u8], units: u64) -> usize {
        let way = self.replace(hash, units);
        let key = &mut self.keys[way];
        key.bytes.clear();
        if bytes.len() <= KEY_BYTES_MAX {
            key.bytes.extend_from_slice(bytes);
        }
        key.key_index = u32::try_from(key_index).unwrap_or(u32::MAX);
        way
    }

    /// Assigns a cell to a new key: a free cell, or that of the key with the fewest units.
    fn replace(&mut self, hash: u64, units: u64) -> usize {
        let mut least = 0;
        for way in 1..WAYS {
            if self.units[way] < self.units[least] {
                least = way;
            }
        }
        self.floor = self.floor.max(self.units[least]);
        let error = self.floor;
        self.hashes[least] = hash;
        self.errors[least] = error;
        self.units[least] = error.saturating_add(units);
        least
    }

    fn keys(&self) -> impl Iterator<Item = HeavyKey> {
        let used = (0..WAYS).filter(|way| self.hashes[*way] != 0);
        used.map(|way| HeavyKey {
            hash: self.hashes[way],
            units: self.units[way],
            error: self.errors[way],
            key: self.keys[way].clone(),
        })
    }

    fn merge(&mut self, other: &Self) {
        if other.hashes == [0; WAYS] {
            return;
        }
        let mut merged: Vec<HeavyKey> = self.keys().collect();
        let is_in_other = |hash: u64| other.hashes.contains(&hash);
        for key in merged.iter_mut().filter(|key| !is_in_other(key.hash)) {
            key.units = key.units.saturating_add(other.floor);
            key.error = key.error.saturating_add(other.floor);
        }
        for mut key in other.keys() {
            match merged.iter_mut().find(|own| own.hash == key.hash) {
                Some(own) => {
                    own.units = own.units.saturating_add(key.units);
                    own.error = own.error.saturating_add(key.error);
                    if key.key.last.time_us >= own.key.last.time_us {
                        own.key = key.key;
                    }
                }
                None => {
                    key.units = key.units.saturating_add(self.floor);
                    key.error = key.error.saturating_add(self.floor);
                    merged.push(key);
                }
            }
        }
        merged.sort_by(|a, b| b.units.cmp(&a.units).then(a.hash.cmp(&b.hash)));
        let dropped = merged.get(WAYS).map_or(0, |key| key.units);
        let floor = self.floor.saturating_add(other.floor).max(dropped);
        *self = Self { floor, ..Self::default() };
        for (way, key) in merged.into_iter().take(WAYS).enumerate() {
            self.hashes[way] = key.hash;
            self.units[way] = key.units;
            self.errors[way] = key.error;
            self.keys[way] = key.key;
        }
    }
}

#[cfg(test)]
mod tests;
