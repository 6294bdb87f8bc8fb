//! What does not fit into words: whole states, each with the numbers it was written under and its
//! penalties.

use tollgate_core::{Algorithm, LimitParams, LimitState, Penalty, penalty};

/// A spilled cell.
#[derive(Clone, Debug)]
pub(crate) struct SpilledCell {
    /// The tag of the slot that points here.
    pub(crate) tag: u64,
    pub(crate) params: LimitParams,
    pub(crate) state: LimitState,
    pub(crate) penalty: Option<(Penalty, penalty::PenaltyState)>,
    /// The end of an operator's block; zero for none.
    pub(crate) blocked_until_us: u64,
}

impl SpilledCell {
    pub(crate) const fn new(tag: u64, params: LimitParams, state: LimitState) -> Self {
        Self { tag, params, state, penalty: None, blocked_until_us: 0 }
    }

    /// The end of the block that an enforced limit with this penalty sees, if there is one.
    pub(crate) fn block_us(&self, penalty: Option<&Penalty>, now_us: u64) -> Option<u64> {
        let by_penalty = penalty
            .zip(self.penalty.as_ref())
            .and_then(|(penalty, (_, state))| penalty.blocked_until_us(state, now_us));
        let by_operator = (now_us < self.blocked_until_us).then_some(self.blocked_until_us);
        by_penalty.max(by_operator)
    }

    /// Bytes held beyond the entry itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.state {
            LimitState::ExpiryLog(ledger) => ledger.heap_bytes(),
            _ => 0,
        }
    }

    /// The instant from which neither the state nor the penalties make a difference.
    pub(crate) fn idle_at_us(&self) -> u64 {
        let state_us = self.params.idle_at_us(&self.state);
        state_us.max(self.penalty_idle_at_us())
    }

    /// The instant from which neither a refusal nor a block is remembered.
    pub(crate) fn penalty_idle_at_us(&self) -> u64 {
        let penalty_us =
            self.penalty.as_ref().map_or(0, |(penalty, state)| penalty.idle_at_us(state));
        penalty_us.max(self.blocked_until_us)
    }
}

#[derive(Clone, Debug)]
enum SlabEntry {
    Used(SpilledCell),
    /// And the next free one.
    Free(Option<u32>),
}

/// A growing array of spilled cells with a list of free places.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    entries: Vec<SlabEntry>,
    free: Option<u32>,
    used: u32,
}

impl Slab {
    /// Bytes that an entry counts for.
    pub(crate) const ENTRY_BYTES: usize = size_of::<SlabEntry>();

    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), free: None, used: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.used as usize
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// How many more fit without growing.
    pub(crate) const fn room(&self) -> usize {
        self.entries.capacity() - self.used as usize
    }

    /// Makes room for `more` entries. Returns by how many the capacity grew.
    pub(crate) fn grow(&mut self, more: usize) -> usize {
        let before = self.entries.capacity();
        self.entries.reserve_exact(before - self.entries.len() + more);
        self.entries.capacity() - before
    }

    pub(crate) fn get(&self, at: u32) -> Option<&SpilledCell> {
        match self.entries.get(at as usize)? {
            SlabEntry::Used(spilled) => Some(spilled),
            SlabEntry::Free(_) => None,
        }
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut SpilledCell> {
        match self.entries.get_mut(at as usize)? {
            SlabEntry::Used(spilled) => Some(spilled),
            SlabEntry::Free(_) => None,
        }
    }

    /// Adds an entry and answers where it is.
    pub(crate) fn insert(&mut self, spilled: SpilledCell) -> u32 {
        self.used += 1;
        if let Some(at) = self.free
            && let Some(entry) = self.entries.get_mut(at as usize)
        {
            if let SlabEntry::Free(next) = *entry {
                self.free = next;
            }
            *entry = SlabEntry::Used(spilled);
            return at;
        }
        self.entries.push(SlabEntry::Used(spilled));
        (self.entries.len() - 1) as u32
    }

    /// Takes the entry at `at` out.
    pub(crate) fn remove(&mut self, at: u32) -> Option<SpilledCell> {
        let entry = self.entries.get_mut(at as usize)?;
        if let SlabEntry::Free(_) = entry {
            return None;
        }
        let SlabEntry::Used(spilled) = std::mem::replace(entry, SlabEntry::Free(self.free)) else {
            return None;
        };
        self.free = Some(at);
        self.used -= 1;
        Some(spilled)
    }

    /// Takes everything out, the memory included.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = SpilledCell> + use<> {
        let entries = std::mem::take(self).entries;
        entries.into_iter().filter_map(|entry| match entry {
            SlabEntry::Used(spilled) => Some(spilled),
            SlabEntry::Free(_) => None,
        })
    }

    /// What the entry at `at`, counted around the end, holds: for those who look for something to
    /// evict.
    pub(crate) fn get_wrapping(&self, at: usize) -> Option<(u32, &SpilledCell)> {
        let at = at.checked_rem(self.entries.len())? as u32;
        self.get(at).map(|spilled| (at, spilled))
    }
}
