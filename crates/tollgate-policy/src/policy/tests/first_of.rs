//! Tests of `first_of`.

use super::{facts, per_minute};
use crate::limit::{Limit, OnMissing};
use crate::match_spec::MatchSpec;
use crate::policy::{Policy, PolicyOptions, Selection};

fn limit(keys: &[&[&str]]) -> Limit {
    let mut limit = Limit::new("l", keys[0], per_minute(10));
    let names = |key: &&[&str]| key.iter().map(|name| Box::from(*name)).collect();
    limit.fallback_keys = keys[1..].iter().map(names).collect();
    limit.tiers = Box::new([("pro".into(), per_minute(100))]);
    limit
}

fn policy(limits: Vec<Limit>) -> Policy {
    let limits = limits.into_iter().map(|limit| (limit, MatchSpec::default())).collect();
    let tier_attribute = Some("plan".to_owned());
    let options = PolicyOptions { tier_attribute, ..PolicyOptions::default() };
    Policy::new(limits, options).unwrap()
}

/// For each limit that applies: the state id, the key, the index of the key, and whether it is
/// missing.
fn selected(policy: &Policy, attributes: &[(&str, &str)]) -> Vec<(u64, Vec<u8>, usize, bool)> {
    let mut selection = Selection::default();
    policy.select(&facts(policy, attributes), 1, &mut selection);
    let selected = policy.selected(&selection).map(|one| {
        let variant = policy.tier_params()[one.params_index];
        assert_eq!((variant.limit, variant.key, variant.id), (one.index, one.key_index, one.id));
        assert_eq!(variant.params, *one.params);
        (one.id, one.key.to_vec(), one.key_index, one.missing)
    });
    selected.collect()
}

const KEYS: &[&[&str]] = &[&["user"], &["ip", "header.user-agent"], &["ip"]];

#[test]
fn the_first_complete_key_is_used() {
    let policy = policy(vec![limit(KEYS)]);
    let place = |attributes: &[(&str, &str)]| selected(&policy, attributes)[0].2;
    let all = [("user", "u"), ("ip", "192.0.2.1"), ("header.user-agent", "curl")];
    assert_eq!(place(&all), 0);
    assert_eq!(place(&all[..1]), 0);
    assert_eq!(place(&all[1..]), 1);
    assert_eq!(place(&all[1..2]), 2);
    assert_eq!(place(&[("user", ""), ("ip", "192.0.2.1")]), 2, "empty is absent");
    assert_eq!(selected(&policy, &all[2..]), [], "none is complete");
    let pro = [("user", "u"), ("plan", "pro")];
    assert_eq!(place(&pro), 0);
    assert_eq!(selected(&policy, &pro)[0].0, selected(&policy, &all)[0].0, "one state for tiers");
}

/// A user named `192.0.2.1`, or with the four bytes of that address as a name, is not counted as
/// that address.
#[test]
fn each_key_is_its_own_space() {
    let policy = policy(vec![limit(KEYS)]);
    let by_ip = selected(&policy, &[("ip", "97.98.99.100")]);
    for name in ["97.98.99.100", "abcd"] {
        let by_user = selected(&policy, &[("user", name), ("ip", "97.98.99.100")]);
        assert_ne!(by_user[0].0, by_ip[0].0, "{name}");
    }
    let ids: std::collections::HashSet<u64> =
        policy.tier_params().iter().map(|one| one.id).collect();
    assert_eq!((policy.tier_params().len(), ids.len()), (6, 3), "tiers share, keys do not");
}

/// A key keeps its counts when keys are reordered, and when a plain key becomes the first of
/// several.
#[test]
fn whose_state_it_is_depends_on_the_key_used_alone() {
    let ids = |keys: &[&[&str]]| {
        let policy = policy(vec![limit(keys)]);
        let requests: [&[(&str, &str)]; 2] = [&[("user", "u")], &[("ip", "192.0.2.1")]];
        requests.map(|attributes| selected(&policy, attributes).first().map(|one| one.0))
    };
    let [user, ip] = ids(&[&["user"], &["ip"]]);
    assert_eq!(ids(&[&["ip"], &["user"]]), [user, ip]);
    assert_eq!(ids(&[&["user"]]), [user, None]);
    assert_eq!(ids(&[&["ip"]]), [None, ip]);
}

#[test]
fn on_missing_says_what_happens_where_none_is_complete() {
    let with = |on_missing| {
        let mut limit = limit(&[&["user"], &["ip", "header.user-agent"]]);
        limit.on_missing = on_missing;
        policy(vec![limit])
    };
    let lacking = [("ip", "192.0.2.1")];
    assert_eq!(selected(&with(OnMissing::Skip), &lacking), []);
    let refused = &selected(&with(OnMissing::Refuse), &lacking)[0];
    assert_eq!((refused.1.as_slice(), refused.3), (&[][..], true));
    // The last key counts with the attributes that are present.
    let share = with(OnMissing::Share);
    let shared = &selected(&share, &lacking)[0];
    assert_eq!((shared.1.as_slice(), shared.2, shared.3), (&[5, 192, 0, 2, 1, 0][..], 1, false));
    let other = &selected(&share, &[("ip", "192.0.2.2")])[0];
    assert_ne!(shared.1, other.1);
    assert_eq!(selected(&share, &[("ip", "192.0.2.1"), ("user", "u")])[0].2, 0);
}

/// Neighbouring limits share key bytes only if their keys are equal.
#[test]
fn limits_side_by_side_do_not_share_keys_by_mistake() {
    let limits =
        || vec![limit(KEYS), limit(&[&["user"]]), limit(KEYS), limit(&[&["ip"]]), limit(KEYS)];
    let policy = policy(limits());
    let alone = |place: usize| self::policy(vec![limits().remove(place)]);
    for attributes in [&[("ip", "192.0.2.1"), ("user", "u")][..], &[("ip", "192.0.2.1")]] {
        let together = selected(&policy, attributes);
        let apart: Vec<_> = (0..5).flat_map(|place| selected(&alone(place), attributes)).collect();
        assert_eq!(together, apart);
    }
}

#[test]
fn the_key_used_is_known_by_name() {
    let limit = limit(KEYS);
    let used = |present: &[&str]| limit.key_used(|name| present.contains(&name)).join("+");
    assert_eq!(used(&["ip", "user"]), "user");
    assert_eq!(used(&["ip", "header.user-agent"]), "ip+header.user-agent");
    assert_eq!(used(&["ip"]), "ip");
    assert_eq!(used(&[]), "ip");
}

/// A key that is tried first and has an open attribute may be the one that a request uses.
#[test]
fn limits_whose_key_may_name_an_open_attribute_are_left_out() {
    let open = |keys: &[&[&str]], attributes: &[(&str, &str)]| {
        let policy = policy(vec![limit(keys)]);
        let mut selection = Selection::default();
        policy.select_possible(&facts(&policy, attributes), &["path"], 9, &mut selection);
        policy.selected(&selection).map(|one| one.key_index).collect::<Vec<_>>()
    };
    let ip = [("ip", "192.0.2.1")];
    assert_eq!(open(KEYS, &ip), [2]);
    assert_eq!(open(&[&["user"], &["ip"], &["path"]], &ip), [1]);
    assert!(open(&[&["user", "path"], &["ip"]], &ip).is_empty());
    assert!(open(&[&["user"], &["path"]], &[("path", "/")]).is_empty());
}

#[test]
fn unlimited_limits_are_found_by_the_key_that_is_used() {
    let mut unlimited = limit(KEYS);
    unlimited.params = None;
    let policy = policy(vec![unlimited]);
    let count = |attributes: &[(&str, &str)]| policy.unlimited(&facts(&policy, attributes)).count();
    assert_eq!((count(&[("ip", "192.0.2.1")]), count(&[("user", "u")])), (1, 1));
    assert_eq!(count(&[("header.user-agent", "curl")]), 0);
}
