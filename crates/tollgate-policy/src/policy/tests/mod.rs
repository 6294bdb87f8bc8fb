mod class;
mod explain;
mod first_of;
mod weights;

use std::collections::HashMap;

use proptest::prelude::*;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Algorithm, Rate};

mod unverified;

use super::*;
use crate::limit::{OnMissing, ResponseCost};
use crate::match_spec::Condition;

fn per_minute(count: u64) -> Option<LimitParams> {
    Some(LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(count, 60_000_000).unwrap())))
}

fn policy(limits: Vec<Limit>, options: PolicyOptions) -> Policy {
    let limits = limits.into_iter().map(|limit| (limit, MatchSpec::default())).collect();
    Policy::new(limits, options).unwrap()
}

fn facts<'a>(policy: &'a Policy, attributes: &[(&str, &'a str)]) -> Facts<'a> {
    let mut facts = policy.facts(FactsBuffer::default());
    for (name, value) in attributes {
        facts.set(name, value).unwrap();
    }
    facts
}

/// One charge as tests compare it: (index, capacity, cost, key, missing).
type Row = (usize, u64, u64, Vec<u8>, bool);

fn rows(policy: &Policy, facts: &Facts<'_>, cost: u64) -> Vec<Row> {
    let mut selection = Selection::default();
    policy.select(facts, cost, &mut selection);
    let rows: Vec<Row> = policy
        .selected(&selection)
        .map(|s| {
            let variant = policy.tier_params()[s.params_index];
            assert_eq!((variant.limit, variant.params, variant.id), (s.index, *s.params, s.id));
            assert_eq!(s.limit.name, policy.limits()[s.index].name);
            (s.index, s.params.capacity(), s.cost, s.key.to_vec(), s.missing)
        })
        .collect();
    assert_eq!((rows.len(), rows.is_empty()), (selection.len(), selection.is_empty()));
    rows
}

fn only_row(policy: &Policy, attributes: &[(&str, &str)]) -> Row {
    let mut rows = rows(policy, &facts(policy, attributes), 1);
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// Without open attributes, the result is what a request meets, except shadow limits; open
/// attributes may have any value.
#[test]
fn open_attributes_may_be_anything() {
    let of = |attribute: &str, pattern: &str| Condition {
        attribute: attribute.into(),
        patterns: vec![pattern.into()],
    };
    let spec = |conditions, not| MatchSpec { conditions, not };
    let limit = |name, key: &[&str]| Limit::new(name, key, per_minute(9));
    let mut shadow = limit("shadow", &["user"]);
    shadow.mode = Mode::Shadow;
    let mut refusing = limit("refusing", &["nobody"]);
    refusing.on_missing = OnMissing::Refuse;
    let limits = vec![
        (limit("all", &["user"]), MatchSpec::default()),
        (limit("posts", &["user"]), spec(vec![of("path", "/a/**"), of("method", "POST")], vec![])),
        (limit("not-a", &["user"]), spec(vec![], vec![vec![of("path", "/a/**")]])),
        (limit("not-bob", &["user"]), spec(vec![], vec![vec![of("user", "bob")]])),
        (limit("each-path", &["user", "path"]), MatchSpec::default()),
        (shadow, MatchSpec::default()),
        (refusing, MatchSpec::default()),
    ];
    let policy = Policy::new(limits, PolicyOptions::default()).unwrap();
    let names = |attributes: &[(&str, &str)], open: &[&str], most| {
        let (facts, mut selection) = (facts(&policy, attributes), Selection::default());
        policy.select_possible(&facts, open, most, &mut selection);
        policy.selected(&selection).map(|one| one.limit.name.to_string()).collect::<Vec<_>>()
    };
    let (bob, ann) = (("user", "bob"), ("user", "ann"));
    assert_eq!(names(&[bob], &["path", "method"], 9), ["all", "posts", "not-a", "refusing"]);
    assert_eq!(
        names(&[ann], &["path", "method"], 9),
        ["all", "posts", "not-a", "not-bob", "refusing"]
    );
    assert_eq!(names(&[ann], &["path", "method"], 2), ["all", "posts"]);
    let in_a = [bob, ("path", "/a/b")];
    assert_eq!(names(&in_a, &["method"], 9), ["all", "posts", "each-path", "refusing"]);
    let get = [bob, ("path", "/a/b"), ("method", "GET")];
    assert_eq!(names(&get, &[], 9), ["all", "each-path", "refusing"]);
    assert_eq!(names(&[], &["path", "method"], 9), ["refusing"], "only limits that refuse");
}

#[test]
fn limits_that_are_off_or_unlimited_do_not_apply() {
    let mut off = Limit::new("off", &[], per_minute(1));
    off.mode = Mode::Off;
    let mut shadow = Limit::new("shadow", &[], per_minute(2));
    shadow.mode = Mode::Shadow;
    let unlimited = Limit::new("unlimited", &[], None);
    let policy = policy(vec![off, shadow, unlimited], PolicyOptions::default());
    let facts = facts(&policy, &[]);
    assert_eq!(rows(&policy, &facts, 1), [(1, 2, 1, vec![], false)]);
    assert_eq!(policy.limits().len(), 3);
    let mut selection = Selection::default();
    for (limit, expected) in [(0, 0), (1, 1), (2, 0), (3, 0)] {
        policy.select_one(limit, &facts, 1, &mut selection);
        assert_eq!(selection.len(), expected, "{limit}");
    }
    assert_eq!((policy.position("shadow"), policy.position("other")), (Some(1), None));
}

#[test]
fn one_limit_can_be_selected_whatever_it_matches() {
    let spec = vec![Condition { attribute: "path".into(), patterns: vec!["/a".into()] }];
    let limits = vec![(
        Limit::new("l", &["user"], per_minute(1)),
        MatchSpec { conditions: spec, not: vec![] },
    )];
    let policy = Policy::new(limits, PolicyOptions::default()).unwrap();
    let facts = facts(&policy, &[("user", "1")]);
    let mut selection = Selection::default();
    policy.select(&facts, 1, &mut selection);
    assert!(selection.is_empty());
    policy.select_one(0, &facts, 3, &mut selection);
    let selected = policy.selected(&selection).next().unwrap();
    assert_eq!((selected.cost, selected.key), (3, &b"\x021"[..]));
}

fn tiered() -> Policy {
    let mut limit = Limit::new("tiered", &[], per_minute(100));
    limit.tiers = Box::new([
        ("free".into(), per_minute(10)),
        ("pro".into(), per_minute(1_000)),
        ("partner".into(), None),
    ]);
    let mut other = Limit::new("other", &[], per_minute(7));
    other.tiers = Box::new([("gold".into(), per_minute(77))]);
    let options = PolicyOptions {
        tier_attribute: Some("header.x-plan".into()),
        default_tier: Some("free".into()),
        ..PolicyOptions::default()
    };
    policy(vec![limit, other], options)
}

#[test]
fn tiers_are_looked_up_with_the_default_for_unknown_ones_and_the_rate_for_limits_without() {
    let policy = tiered();
    assert_eq!(policy.tier_params().len(), 5, "unlimited has no numbers");
    let cases: [(&str, &[(usize, u64)]); 6] = [
        ("pro", &[(0, 1_000), (1, 7)]),
        ("free", &[(0, 10), (1, 7)]),
        ("", &[(0, 10), (1, 7)]),
        ("unheard-of", &[(0, 10), (1, 7)]),
        ("gold", &[(0, 100), (1, 77)]),
        ("partner", &[(1, 7)]),
    ];
    for (tier, expected) in cases {
        let capacities = |facts: &Facts<'_>| {
            rows(&policy, facts, 1).iter().map(|row| (row.0, row.1)).collect::<Vec<_>>()
        };
        assert_eq!(capacities(&facts(&policy, &[("header.x-plan", tier)])), expected, "{tier}");
        let mut explicit = facts(&policy, &[]);
        explicit.set_tier(tier);
        assert_eq!(capacities(&explicit), expected, "{tier}");
    }
}

#[test]
fn an_explicit_tier_wins_over_the_attribute() {
    let policy = tiered();
    let mut facts = facts(&policy, &[("header.x-plan", "pro")]);
    facts.set_tier("partner");
    assert_eq!(rows(&policy, &facts, 1).len(), 1);
    // An unknown tier stays unknown; the tier that a client sends does not replace it.
    facts.set_tier("unheard-of");
    assert_eq!(rows(&policy, &facts, 1)[0].1, 10);
}

#[test]
fn without_a_default_an_unknown_tier_has_the_rate() {
    let mut limit = Limit::new("l", &[], per_minute(100));
    limit.tiers = Box::new([("pro".into(), per_minute(1_000))]);
    let options = PolicyOptions { tier_attribute: Some("ip".into()), ..PolicyOptions::default() };
    let policy = policy(vec![limit], options);
    assert_eq!(only_row(&policy, &[]).1, 100);
    assert_eq!(only_row(&policy, &[("ip", "192.0.2.1")]).1, 100);
}

#[test]
fn a_tier_may_come_from_any_attribute_even_the_address() {
    let mut limit = Limit::new("l", &[], per_minute(100));
    limit.tiers = Box::new([("192.0.2.1".into(), per_minute(1_000))]);
    let options = PolicyOptions { tier_attribute: Some("ip".into()), ..PolicyOptions::default() };
    let policy = policy(vec![limit], options);
    assert_eq!(only_row(&policy, &[("ip", "::ffff:192.0.2.1")]).1, 1_000);
}

#[test]
fn costs_multiply_and_saturate() {
    let mut limit = Limit::new("l", &[], per_minute(1));
    limit.cost = CostRule::Fixed(5);
    let mut estimate = Limit::new("e", &[], per_minute(1));
    let response = ResponseCost::Json("usage.total_tokens".into());
    estimate.cost = CostRule::Estimate { estimate: 500, response };
    let policy = policy(vec![limit, estimate], PolicyOptions::default());
    let facts = facts(&policy, &[]);
    let costs = |cost| rows(&policy, &facts, cost).iter().map(|row| row.2).collect::<Vec<_>>();
    assert_eq!(costs(1), [5, 500]);
    assert_eq!(costs(3), [15, 1_500]);
    assert_eq!(costs(0), [0, 0]);
    assert_eq!(costs(u64::MAX), [u64::MAX, u64::MAX]);
}

#[test]
fn a_cost_from_an_attribute_has_a_default_and_a_maximum() {
    let mut limit = Limit::new("l", &[], per_minute(1));
    limit.cost = CostRule::Attribute { name: "header.x-cost".into(), default: 2, max: 1_000 };
    let policy = policy(vec![limit], PolicyOptions::default());
    let cases = [
        ("7", 7),
        ("0", 0),
        ("007", 7),
        ("1000", 1_000),
        ("1001", 1_000),
        ("99999999999999999999999", 1_000),
        ("", 2),
        ("-1", 2),
        ("+1", 2),
        ("1.5", 2),
        (" 1", 2),
        ("\u{661}", 2),
        ("many", 2),
    ];
    for (value, expected) in cases {
        assert_eq!(only_row(&policy, &[("header.x-cost", value)]).2, expected, "{value}");
    }
}

#[test]
fn a_missing_attribute_skips_shares_or_refuses() {
    let limit = |on_missing| {
        let mut limit = Limit::new("l", &["user", "ip"], per_minute(1));
        limit.on_missing = on_missing;
        policy(vec![limit], PolicyOptions::default())
    };
    let half = [("user", "1"), ("ip", "")];
    let skip = limit(OnMissing::Skip);
    assert_eq!(rows(&skip, &facts(&skip, &half), 1), []);
    assert_eq!(only_row(&limit(OnMissing::Refuse), &half), (0, 1, 1, vec![], true));
    let share = limit(OnMissing::Share);
    assert_eq!(only_row(&share, &half), (0, 1, 1, b"\x021\0".to_vec(), false));
    assert_eq!(only_row(&share, &[]).3, b"\0\0");
    let whole = only_row(&limit(OnMissing::Refuse), &[("user", "1"), ("ip", "192.0.2.1")]);
    assert_eq!((whole.3, whole.4), (b"\x021\x05\xc0\0\x02\x01".to_vec(), false));
}

#[test]
fn keys_hold_masked_addresses_and_no_clear_api_key() {
    let policy =
        policy(vec![Limit::new("l", &["ip", "api_key"], per_minute(1))], PolicyOptions::default());
    let key = |ip, api_key| only_row(&policy, &[("ip", ip), ("api_key", api_key)]).3;
    assert_eq!(key("2001:db8::1", "k"), key("2001:db8::ffff:0:0:2", "k"));
    assert_ne!(key("2001:db8::1", "k"), key("2001:db8:0:1::1", "k"));
    assert_ne!(key("192.0.2.1", "k"), key("192.0.2.2", "k"));
    assert_ne!(key("192.0.2.1", "k"), key("192.0.2.1", "l"));
    let key = key("192.0.2.1", "sk_live_1");
    assert!(!key.windows(9).any(|window| window == b"sk_live_1"));
}

#[test]
fn a_limit_without_key_is_one_shared_bucket() {
    let policy = policy(vec![Limit::new("l", &[], per_minute(1))], PolicyOptions::default());
    assert_eq!(only_row(&policy, &[("user", "1")]).3, b"");
}

#[test]
fn what_does_not_make_a_policy_says_why() {
    let with = |attribute: &str, pattern: &str| {
        let condition = Condition { attribute: attribute.into(), patterns: vec![pattern.into()] };
        let spec = MatchSpec { conditions: vec![], not: vec![vec![condition]] };
        let limits = vec![(Limit::new("l", &[], per_minute(1)), spec)];
        Policy::new(limits, PolicyOptions::default()).unwrap_err().to_string()
    };
    assert!(with("ip", "10.*").contains("limit `l`: `10.*` is neither an address nor a network"));
    assert!(with("path", &format!("/*{}*", "x".repeat(2_000))).contains("split it"));
    let options = PolicyOptions { ipv6_prefix: 129, ..PolicyOptions::default() };
    assert_eq!(Policy::new(vec![], options).unwrap_err(), InvalidPolicy::Ipv6Prefix(129));
    let options = PolicyOptions {
        attributes: (0..=65_536).map(|number| number.to_string()).collect(),
        ..PolicyOptions::default()
    };
    assert_eq!(Policy::new(vec![], options).unwrap_err(), InvalidPolicy::TooManyAttributes);
}

#[test]
fn attributes_are_those_that_something_mentions() {
    let mut limit = Limit::new("l", &["user"], per_minute(1));
    limit.cost = CostRule::Attribute { name: "header.X-Cost".into(), default: 1, max: 2 };
    let condition =
        |attribute: &str| Condition { attribute: attribute.into(), patterns: vec!["*".into()] };
    let spec =
        MatchSpec { conditions: vec![condition("host")], not: vec![vec![condition("method")]] };
    let options = PolicyOptions {
        tier_attribute: Some("plan".into()),
        attributes: vec!["org".into()],
        ..PolicyOptions::default()
    };
    let policy = Policy::new(vec![(limit, spec)], options).unwrap();
    let mut names: Vec<_> = policy.attributes().map(|(_, name)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["header.x-cost", "host", "method", "org", "plan", "user"]);
    assert!(policy.attributes().all(|(id, name)| policy.attribute(name) == Some(id)));
    assert_eq!(facts(&policy, &[("org", "acme")]).get("org").as_deref(), Some("acme"));
}

#[test]
fn a_limit_made_by_hand_has_the_identity_of_one_from_the_file() {
    let id = |limit: &Limit| limit.state_id(&limit.params.unwrap());
    let by_hand = |key: &[&str], count| id(&Limit::new("l", key, per_minute(count)));
    let base = by_hand(&["a", "b"], 1);
    assert_eq!(base, by_hand(&["a", "b"], 9), "N is no part of it");
    let yaml = b"limits: [{name: l, key: [a, b], rate: 1/min, algorithm: fixed-window}]";
    assert_eq!(base, id(&crate::compile(yaml).unwrap().limits[0].0));
    assert_ne!(base, by_hand(&["ab"], 1));
}

proptest! {
    #[test]
    fn no_two_tuples_share_a_key(
        tuples in prop::collection::vec(prop::array::uniform3("[\u{0}\u{1}\u{2}ab]{0,3}|a{126,130}"), 1..12),
    ) {
        let mut limit = Limit::new("l", &["a", "b", "c"], per_minute(1));
        limit.on_missing = OnMissing::Share;
        let policy = policy(vec![limit], PolicyOptions::default());
        let mut seen = HashMap::new();
        for tuple in &tuples {
            let key = only_row(&policy, &[("a", &tuple[0]), ("b", &tuple[1]), ("c", &tuple[2])]).3;
            prop_assert_eq!(*seen.entry(key).or_insert(tuple), tuple);
        }
    }

    /// Neighbouring limits with the same key share its bytes. Each must select as it does alone,
    /// and earlier selections by other facts must not matter.
    #[test]
    fn limits_are_selected_together_as_they_are_alone(
        shapes in prop::collection::vec((0_usize..5, 0_usize..3), 1..8),
        values in prop::array::uniform2(prop::option::of("[xy]?")),
    ) {
        const KEYS: [&[&str]; 5] = [&[], &["a"], &["b"], &["a", "b"], &["b", "a"]];
        const MISSING: [OnMissing; 3] = [OnMissing::Skip, OnMissing::Share, OnMissing::Refuse];
        let limits: Vec<Limit> = shapes.iter().enumerate().map(|(n, (key, on_missing))| {
            let mut limit = Limit::new(&format!("l{n}"), KEYS[*key], per_minute(1));
            limit.on_missing = MISSING[*on_missing];
            limit
        }).collect();
        let attributes: Vec<(&str, &str)> = ["a", "b"]
            .into_iter()
            .zip(&values)
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect();
        let expected: Vec<(Vec<u8>, bool)> = limits.iter().flat_map(|limit| {
            let alone = policy(vec![limit.clone()], PolicyOptions::default());
            let known = attributes.iter().filter(|(name, _)| limit.key.iter().any(|one| **one == **name));
            let known: Vec<_> = known.copied().collect();
            rows(&alone, &facts(&alone, &known), 1).into_iter().map(|row| (row.3, row.4))
        }).collect();
        let together = policy(limits, PolicyOptions::default());
        let known = attributes.iter().filter(|(name, _)| together.attributes().any(|(_, one)| one == *name));
        let known: Vec<_> = known.copied().collect();
        let mut selection = Selection::default();
        together.select(&facts(&together, &[]), 1, &mut selection);
        let before = selection.len();
        together.select_append(&facts(&together, &known), 1, &mut selection);
        let seen: Vec<(Vec<u8>, bool)> =
            together.selected(&selection).skip(before).map(|one| (one.key.to_vec(), one.missing)).collect();
        prop_assert_eq!(seen, expected);
    }
}
