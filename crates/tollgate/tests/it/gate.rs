use crate::fixture::{NOW_US, check, facts, fixture, gate, rows, setup};
use tollgate::engine::{GateBuffers, Source};

#[test]
fn nothing_is_charged_when_one_limit_refuses() {
    let gate = gate(
        "  - {name: wide, key: [user], rate: 10/min}\n  - {name: narrow, key: [user], rate: 1/min}\n",
    );
    assert_eq!(rows(&check(&gate, &[("user", "a")], 1)), [("wide", true, 9), ("narrow", true, 0)]);
    let refused = check(&gate, &[("user", "a")], 1);
    assert!(!refused.allowed);
    assert_eq!(rows(&refused), [("wide", true, 9), ("narrow", false, 0)]);
    assert_eq!(refused.source, Source::Memory);
}

#[test]
fn a_shadow_limit_shows_and_never_refuses() {
    let gate = gate("  - {name: trial, key: [user], rate: 1/min, mode: shadow}\n");
    assert_eq!(check(&gate, &[("user", "a")], 1).source, Source::Memory);
    let over = check(&gate, &[("user", "a")], 1);
    assert!(over.allowed);
    assert_eq!((over.source, over.rows[0].source), (Source::Shadow, Source::Shadow));
    assert_eq!(over.retry_after_us, Some(0));
}

#[test]
fn a_missing_attribute_refuses_where_the_limit_says_so() {
    let gate = gate("  - {name: strict, key: [user], rate: 5/min, on_missing: refuse}\n");
    let refused = check(&gate, &[], 1);
    assert!(!refused.allowed);
    assert_eq!(refused.retry_after_us, None, "no wait brings the attribute");
    assert_eq!((refused.rows[0].outcome.limit, refused.rows[0].outcome.remaining), (5, 0));
    assert!(check(&gate, &[("user", "a")], 1).allowed);
}

#[test]
fn the_longest_wait_counts_and_never_outlasts_any() {
    let gate = gate(
        "  - {name: a, rate: 1/s, algorithm: gcra}\n  - {name: b, rate: 1/min, algorithm: gcra}\n",
    );
    check(&gate, &[], 1);
    assert_eq!(check(&gate, &[], 1).retry_after_us, Some(60_000_000));
    assert_eq!(check(&gate, &[], 2).retry_after_us, None, "two never fit");
}

#[test]
fn a_tier_with_another_period_counts_apart() {
    let gate = gate(
        "  - {name: l, key: [user], rate: 1/min, algorithm: gcra, tiers: {more: 2/min, hourly: 1/h}}\n",
    );
    let as_tier = |plan| check(&gate, &[("user", "a"), ("plan", plan)], 1).allowed;
    assert!(as_tier("free"));
    assert!(!as_tier("unknown"), "an unknown tier is the default one");
    assert!(as_tier("hourly"), "another period is another count");
    assert!(!as_tier("hourly"));
    assert!(
        !as_tier("more"),
        "the same period keeps the time owed: a minute, and two units fit in one"
    );
}

#[test]
fn buckets_are_named_only_on_request_and_are_stable() {
    let yaml = "  - {name: l, key: [user], rate: 5/min}\n";
    assert_eq!(check(&gate(yaml), &[("user", "a")], 1).rows[0].bucket, 0);
    let named = || fixture(setup(yaml).with_buckets());
    let (one, two) = (named(), named());
    let bucket = check(&one, &[("user", "a")], 1).rows[0].bucket;
    assert_eq!(bucket, check(&two, &[("user", "a")], 1).rows[0].bucket, "another process agrees");
    assert_ne!(bucket, check(&one, &[("user", "b")], 1).rows[0].bucket);
}

#[test]
fn buffers_are_reused() {
    let gate = gate("  - {name: l, key: [user], rate: 5/min}\n");
    let mut work = GateBuffers::default();
    let facts = facts(&gate, &[("user", "a")]);
    let first = gate.gate.check(&gate.rules, NOW_US, &facts, 1, &mut work).now();
    let place = first.rows.as_ptr();
    work.recycle(first);
    let second = gate.gate.check(&gate.rules, NOW_US, &facts, 1, &mut work).now();
    assert_eq!((second.rows.as_ptr(), second.rows.len()), (place, 1));
}

#[test]
fn a_tier_of_nothing_shares_the_penalty() {
    let gate = gate(concat!(
        "  - {name: l, key: [user], rate: 5/min, algorithm: gcra, tiers: {banned: 0/min},\n",
        "     penalty: {after: 1, block: 1h, max: 1h}}\n",
    ));
    let blocked = check(&gate, &[("user", "a"), ("plan", "banned")], 1);
    assert_eq!(blocked.source, Source::Blocked);
    assert_eq!(check(&gate, &[("user", "a")], 1).source, Source::Blocked, "whatever the tier");
}
