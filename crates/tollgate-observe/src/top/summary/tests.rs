use super::{HeavyKey, KEY_BYTES_MAX, LastFigures, SETS, Summary, WAYS};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A hash as good as a keyed one, different for each `salt`.
fn mix(key: u64, salt: u64) -> u64 {
    let mut hash = (key ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ hash >> 31).max(1)
}

fn add(summary: &mut Summary, key: u64, salt: u64, units: u64) {
    let bytes = key.to_le_bytes();
    summary.add(mix(key, salt), (0, &bytes), units, LastFigures::default());
}

/// Checks the bounds of a summary against exact counts.
fn check(summary: &Summary, exact: &BTreeMap<u64, u64>, salt: u64) {
    let kept: BTreeMap<u64, HeavyKey> =
        summary.keys().into_iter().map(|key| (key.hash, key)).collect();
    assert_eq!(summary.total_units(), exact.values().sum::<u64>());
    for (key, n) in exact {
        match kept.get(&mix(*key, salt)) {
            Some(found) => {
                assert!(found.units - found.error <= *n && *n <= found.units, "{found:?} for {n}");
                assert_eq!(found.key.bytes, key.to_le_bytes());
            }
            None => assert!(*n <= summary.floor(), "{n} of {key}, above {}", summary.floor()),
        }
    }
    let listed = summary.keys();
    assert!(listed.len() <= SETS * WAYS && listed.is_sorted_by(|a, b| a.units >= b.units));
}

fn stream() -> impl Strategy<Value = Vec<(u64, u64)>> {
    // Few keys often, many keys seldom, sometimes many units at once.
    let key = prop_oneof![3 => 0_u64..6, 2 => 0_u64..400, 1 => 0_u64..100_000];
    let units = prop_oneof![6 => Just(1_u64), 2 => 0_u64..10, 1 => 0_u64..100_000];
    proptest::collection::vec((key, units), 0..3_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bounds_hold_in_every_stream(stream in stream(), salt: u64) {
        let (mut summary, mut exact) = (Summary::default(), BTreeMap::new());
        for (key, units) in stream {
            add(&mut summary, key, salt, units);
            *exact.entry(key).or_default() += units;
        }
        check(&summary, &exact, salt);
    }

    #[test]
    fn bounds_hold_when_summaries_are_merged_and_go_on(
        streams in proptest::collection::vec(stream(), 1..5), salt: u64, after in stream(),
    ) {
        let (mut all, mut exact) = (Summary::default(), BTreeMap::new());
        for stream in streams {
            let mut one = Summary::default();
            for (key, units) in stream {
                add(&mut one, key, salt, units);
                *exact.entry(key).or_default() += units;
            }
            all.merge(&one);
            check(&all, &exact, salt);
        }
        for (key, units) in after {
            add(&mut all, key, salt, units);
            *exact.entry(key).or_default() += units;
        }
        check(&all, &exact, salt);
    }
}

#[test]
fn few_keys_are_counted_exactly() {
    let mut summary = Summary::default();
    for key in 0..20 {
        for _ in 0..=key {
            add(&mut summary, key, 0, 2);
        }
    }
    let keys = summary.keys();
    assert_eq!((keys.len(), summary.floor()), (20, 0));
    assert!(keys.iter().all(|key| key.error == 0));
    assert_eq!(keys[0].units, 40);
}

#[test]
fn heavy_keys_are_found_among_a_million_others() {
    // Ten keys with a fiftieth of the stream each. All other keys come once.
    let mut summary = Summary::default();
    for round in 0..100_000_u64 {
        (0..2).for_each(|n| add(&mut summary, round * 2 % 10 + n, 7, 1));
        (0..8).for_each(|other| add(&mut summary, 1_000 + round * 8 + other, 7, 1));
    }
    let total = summary.total_units();
    let top: Vec<u64> = summary.keys().iter().take(10).map(|key| key.hash).collect();
    assert!((0..10).all(|heavy| top.contains(&mix(heavy, 7))));
    // The error is within twice that of Space-Saving with as many cells.
    let cells = (SETS * WAYS) as u64;
    assert!(summary.floor() <= 2 * total / cells, "{} of {total}", summary.floor());
}

#[test]
fn a_long_key_is_counted_and_not_remembered() {
    let mut summary = Summary::default();
    summary.add(5, (3, &[7; KEY_BYTES_MAX + 1]), 4, LastFigures::default());
    let keys = summary.keys();
    assert_eq!((keys[0].units, keys[0].key.key_index), (4, 3));
    assert!(keys[0].key.bytes.is_empty());
}
