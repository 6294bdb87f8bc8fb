use super::{
    CACHE_TTL_US, CachedTier, ENTRIES_MAX, RETRY_DELAY_US, TierCache, TierKey, lock,
    parse_tier_name,
};
use crate::storage::Storage;
use std::path::Path;
use tokio::runtime::Builder;

#[test]
fn it_is_bounded_and_what_is_past_makes_room() {
    let cache = TierCache::default();
    let entry = |until_us| CachedTier { tier: None, until_us };
    for name in 0..ENTRIES_MAX as u128 {
        cache.insert(name, entry(10), 0);
    }
    cache.insert(u128::MAX, entry(10), 9);
    assert_eq!(lock(&cache.entries).len(), ENTRIES_MAX, "all of them still hold");
    cache.insert(u128::MAX, entry(20), 10);
    assert_eq!(lock(&cache.entries).len(), 1);
}

#[test]
fn a_value_that_names_no_tier_is_none() {
    assert_eq!(parse_tier_name(b"pro".to_vec()).as_deref(), Some("pro"));
    for value in [vec![], vec![0xff], vec![b'x'; 257]] {
        assert_eq!(parse_tier_name(value), None);
    }
}

#[test]
fn a_store_that_cannot_say_is_not_asked_again_about_anyone_and_nobody_loses_a_tier() {
    let policy = b"store: {redis: {url: 'unix:///nowhere/at/all'}}";
    let settings = tollgate_policy::compile(policy).unwrap().settings;
    let storage = Storage::new(&settings.store, Path::new(""), |_| None).unwrap();
    let (cache, mut failures) = (TierCache::default(), Vec::new());
    let pro = CachedTier { tier: Some("pro".into()), until_us: CACHE_TTL_US };
    cache.insert(cache.cache_key("plans", "paula"), pro, 0);
    let mut ask = |who: &'static str, now_us: u64| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let failed = |_: &_| failures.push((who, now_us));
        runtime.block_on(cache.tier(
            &storage,
            "plans",
            TierKey { value: who, is_secret: false },
            now_us,
            failed,
        ))
    };
    let late = CACHE_TTL_US + RETRY_DELAY_US;
    assert_eq!(ask("otto", CACHE_TTL_US), None);
    assert_eq!(ask("paula", late - 1).as_deref(), Some("pro"), "the last that was known");
    assert_eq!(ask("nina", late - 1), None);
    assert_eq!(ask("paula", late).as_deref(), Some("pro"));
    assert_eq!(failures, [("otto", CACHE_TTL_US), ("paula", late)]);
}
