use super::{CellTable, SLOTS, Slot, same_key};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Few homes, many keys: everything collides and wraps around the end.
fn tag() -> impl Strategy<Value = u64> {
    (prop_oneof![0..4_u64, 0xffff_fff0..=0xffff_ffff_u64], 0..8_u64)
        .prop_map(|(home, key)| home << 32 | (key + 1) << 12)
}

proptest! {
    #[test]
    fn equals_a_map(steps in prop::collection::vec((tag(), any::<bool>(), 0..4096_u64), 1..300)) {
        let mut table = CellTable::<1>::new();
        let mut map = BTreeMap::new();
        table.resize(1);
        for (tag, add, params_id) in steps {
            match (table.find(tag), add) {
                (Some(at), false) => {
                    let slot = table.remove(at);
                    prop_assert_eq!(map.remove(&tag), Some(slot.words[0]));
                }
                (None, true) if table.room() > 0 => {
                    table.insert(Slot { tag: tag | params_id, words: [tag ^ params_id] });
                    map.insert(tag, tag ^ params_id);
                }
                (found, _) => prop_assert_eq!(found.is_some(), map.contains_key(&tag)),
            }
            if table.room() == 0 && table.chunks() < 4 {
                let cells = table.drain();
                table.resize(table.chunks() + 1);
                cells.into_iter().for_each(|slot| table.insert(slot));
            }
            prop_assert_eq!(table.len(), map.len());
        }
        for (tag, word) in &map {
            let at = table.find(*tag).unwrap();
            prop_assert!(same_key(table.slot(at).tag, *tag));
            prop_assert_eq!(table.slot(at).words[0], *word);
        }
        prop_assert_eq!(table.iter().count(), map.len());
    }
}

#[test]
fn the_hand_goes_round() {
    let mut table = CellTable::<1>::new();
    assert!(table.advance_hand().is_none(), "an empty table has nothing to turn to");
    table.resize(1);
    for key in 1..=20_u64 {
        table.insert(Slot { tag: key << 50 | 1 << 12, words: [key] });
    }
    let seen: Vec<_> =
        (0..SLOTS).filter_map(|_| table.advance_hand()).map(|(_, slot)| slot.tag).collect();
    assert_eq!(seen.len(), 20, "one round meets every cell once");
}
