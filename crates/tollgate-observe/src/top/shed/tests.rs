use super::take_off;
use crate::top::summary::{LastFigures, Summary};
use std::collections::BTreeMap;

/// A summary of these units; each key is its own hash.
fn summary(units: &[(u64, u64)]) -> Summary {
    let mut summary = Summary::default();
    for (key, units) in units {
        summary.add(*key, (0, &key.to_le_bytes()), *units, LastFigures::default());
    }
    summary
}

#[test]
fn few_keys_are_exact() {
    let all = summary(&[(1, 10), (2, 5), (3, 1)]);
    let (keys, total) = take_off(&all, &summary(&[(1, 8), (3, 1)]));
    let keys: Vec<_> = keys.iter().map(|key| (key.hash, key.units, key.error)).collect();
    assert_eq!(keys, [(2, 5, 0), (1, 2, 0)], "sorted again, and without those that have nothing");
    assert_eq!(total, 7);
}

/// Ten thousand keys in 128 cells: each bound holds against the exact counts.
#[test]
fn bounds_hold_for_more_keys_than_cells() {
    let mut exact: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let (mut all, mut off) = (Summary::default(), Summary::default());
    let mut random = 1_u64;
    for _ in 0..100_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // A few keys are heavy, and the share of shed requests differs by key.
        let keys = if (random >> 60).is_multiple_of(2) { 20 } else { 10_000 };
        let key = 1 + (random >> 33) % keys;
        let counts = exact.entry(key).or_default();
        counts.0 += 1;
        all.add(key, (0, &key.to_le_bytes()), 1, LastFigures::default());
        if (random >> 40) % 10 < key % 10 {
            counts.1 += 1;
            off.add(key, (0, &key.to_le_bytes()), 1, LastFigures::default());
        }
    }
    let (keys, total) = take_off(&all, &off);
    assert_eq!(total, exact.values().map(|(all, off)| all - off).sum::<u64>());
    assert!(keys.len() > 50 && keys[0].error < keys[0].units, "{:?}", keys[0]);
    for (key, (all_units, off_units)) in exact {
        let net = all_units - off_units;
        match keys.iter().find(|one| one.hash == key) {
            Some(one) => {
                assert!(net <= one.units && one.units - one.error <= net, "{key}: {net} {one:?}");
            }
            None => assert!(net <= all.floor(), "{key}: {net}"),
        }
    }
}
