use super::{ENTRIES_MAX, Entry, TierCache, tier};

#[test]
fn it_is_bounded_and_what_is_past_makes_room() {
    let cache = TierCache::default();
    let entry = |until_us| Entry { tier: None, until_us };
    for name in 0..ENTRIES_MAX as u128 {
        cache.keep(name, entry(10), 0);
    }
    cache.keep(u128::MAX, entry(10), 9);
    assert_eq!(cache.lock().len(), ENTRIES_MAX, "all of them still hold");
    cache.keep(u128::MAX, entry(20), 10);
    assert_eq!(cache.lock().len(), 1);
}

#[test]
fn a_value_that_names_no_tier_is_none() {
    assert_eq!(tier(b"pro".to_vec()).as_deref(), Some("pro"));
    for value in [vec![], vec![0xff], vec![b'x'; 257]] {
        assert_eq!(tier(value), None);
    }
}
