use super::address::{CellAddress, CellHasher};
use super::{Cell, CellTable, SLOTS, find_exact, find_exact_or, home, same_key};
use crate::raw::pin::pin;
use crate::raw::slots::{ArraySize, Garbage, Location};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Few homes, many keys: everything collides and wraps around the end.
fn tag() -> impl Strategy<Value = u64> {
    (prop_oneof![0..4_u64, 0xffff_fff0..=0xffff_ffff_u64], 0..8_u64)
        .prop_map(|(home, key)| home << 32 | (key + 1) << 12)
}

struct Table {
    table: CellTable<1>,
    location: Location<1>,
    garbage: Garbage,
}

impl Table {
    fn new() -> Self {
        let (table, location) = (CellTable::new(), Location::new());
        Self { table, location, garbage: Garbage::new() }
    }

    fn rebuild(&mut self, size: ArraySize) {
        let cells = self.table.drain();
        self.table.refill(&cells, size, |old, new| old.replace(new, &self.location, &self.garbage));
    }

    fn word(&self, tag: u64) -> Option<u64> {
        let pin = pin();
        let slots = self.location.read(&pin);
        let slot = find_exact(slots, tag)?;
        Some(slot.words[0].load(crate::sync::Ordering::Acquire))
    }
}

fn one() -> ArraySize {
    ArraySize::ZERO.next().unwrap()
}

proptest! {
    #[test]
    fn equals_a_map(steps in prop::collection::vec((tag(), 0..4_u8, 1..3_u64), 1..300)) {
        let mut all = Table::new();
        let mut map = BTreeMap::new();
        all.rebuild(one());
        for (tag, step, params_id) in steps {
            let table = &mut all.table;
            match (table.find(tag), step) {
                (Some(at), 0) => {
                    let cell = table.remove(at);
                    prop_assert_eq!(map.remove(&tag), Some((cell.tag, cell.words[0])));
                }
                (Some(_), 1) => {
                    let (at, _) = table.hold(tag).unwrap();
                    prop_assert!(!super::is_inline(table.slots[at].words[0].load(crate::sync::Ordering::Relaxed)));
                }
                (Some(at), 2) => {
                    let cell = table.cell(at);
                    table.set(at, [cell.words[0] + 1]);
                    map.insert(tag, (cell.tag, cell.words[0] + 1));
                }
                (Some(_), _) => table.release(),
                (None, 0) if table.room() > 0 => {
                    let cell = Cell { tag: tag | params_id, words: [tag >> 8 ^ params_id] };
                    table.insert(cell);
                    map.insert(tag, (cell.tag, cell.words[0]));
                }
                (found, _) => prop_assert_eq!(found.is_some(), map.contains_key(&tag)),
            }
            if all.table.room() == 0 {
                let next = all.table.size().next().unwrap();
                all.rebuild(next);
            }
            prop_assert_eq!(all.table.len(), map.len());
        }
        for (tag, (tagged, word)) in &map {
            let at = all.table.find(*tag).unwrap();
            prop_assert!(same_key(all.table.cell(at).tag, *tag));
            prop_assert_eq!(all.table.cell(at).words[0], *word, "held or not");
            let _ = tagged;
        }
        all.table.release();
        for (tagged, word) in map.values() {
            prop_assert_eq!(all.word(*tagged), Some(*word), "found without the lock");
        }
        prop_assert_eq!(all.table.iter().count(), map.len());
    }
}

#[test]
fn a_slot_keeps_its_tag() {
    let mut all = Table::new();
    all.rebuild(one());
    let key = |n: u64| n << 12;
    for n in 1..=20 {
        all.table.insert(Cell { tag: key(n), words: [n] });
    }
    let tags = |all: &Table| -> Vec<u64> {
        let load = |slot: &super::Slot<1>| slot.tag.load(crate::sync::Ordering::Relaxed);
        all.table.slots.iter().map(load).collect()
    };
    let before = tags(&all);
    let at = all.table.find(key(7)).unwrap();
    all.table.remove(at);
    assert_eq!(all.table.find(key(7)), None);
    all.table.insert(Cell { tag: key(21), words: [21] });
    all.table.insert(Cell { tag: key(7), words: [70] });
    assert_eq!(all.table.find(key(7)), Some(at), "the same key may have the slot again");
    let kept =
        before.iter().zip(tags(&all)).filter(|&(&before, after)| before != 0 && before != after);
    assert_eq!(kept.count(), 0, "no other key may");
    assert_eq!(all.table.dead(), 0);
}

#[test]
fn an_old_array_has_no_words() {
    let mut all = Table::new();
    all.rebuild(one());
    all.table.insert(Cell { tag: 1 << 12, words: [5] });
    let pin = pin();
    let old = all.location.read(&pin);
    let cells = all.table.drain();
    all.table.refill(&cells, one(), |slots, new| {
        slots.replace(new, &all.location, &all.garbage);
    });
    let slot = find_exact(old, 1 << 12).unwrap();
    let word = slot.words[0].load(crate::sync::Ordering::Relaxed);
    assert!(!super::is_inline(word), "a reader of it has to take the lock");
    all.garbage.free_all();
    assert_eq!(slot.tag.load(crate::sync::Ordering::Relaxed), 1 << 12, "and it is not freed");
    drop(pin);
    assert_eq!(all.word(1 << 12), Some(5));
}

#[test]
fn sizes_grow_by_an_eighth() {
    let sizes = std::iter::successors(Some(ArraySize::ZERO), |size| size.next());
    let chunks: Vec<_> = sizes.map(ArraySize::chunks).collect();
    assert_eq!(chunks[..18], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18]);
    assert!(chunks.windows(2).all(|pair| pair[1] - pair[0] <= (pair[0] / 8).max(1)));
    assert_eq!(chunks.last(), Some(&245_760));
    assert!(home::<1>(u64::MAX, SLOTS) < SLOTS);
}

/// Zero marks an empty slot, which a search without the lock must not take for a key's.
#[test]
fn no_tag_is_zero() {
    let zero = CellAddress::default();
    assert_ne!(zero.tag(), 0);
    assert_ne!(zero.tag_with(crate::ParamsId(1)), 0);
}

#[test]
fn limits_on_one_key_are_side_by_side() {
    let hasher = CellHasher::new(1, Some(7));
    let mut all = Table::new();
    all.rebuild(one());
    let addresses: Vec<_> = (0..3).map(|limit| hasher.address(limit, b"user")).collect();
    for (n, address) in addresses.iter().enumerate() {
        all.table.insert(Cell { tag: address.tag(), words: [n as u64] });
    }
    let first = home::<1>(addresses[0].tag(), all.table.slots.len());
    for (n, address) in addresses.iter().enumerate() {
        // Wrong guesses, too: another limit's slot, an empty one, and one beyond the array.
        for guess in [first + n, first + 1, first + 3, usize::MAX] {
            let (at, slot) = find_exact_or(&all.table.slots, address.tag(), guess).unwrap();
            assert_eq!(
                (at, slot.words[0].load(crate::sync::Ordering::Relaxed)),
                (first + n, n as u64)
            );
        }
    }
    let without_key: Vec<_> = (0..8).map(|limit| hasher.address(limit, b"")).collect();
    let homes = without_key.iter().map(|address| home::<1>(address.tag(), 1 << 20));
    assert!(homes.collect::<std::collections::BTreeSet<_>>().len() > 1, "busy limits are spread");
}
