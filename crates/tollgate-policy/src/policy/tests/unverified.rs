//! Tests of limits that refuse because a token did not verify.

use super::{per_minute, policy};
use crate::facts::{Facts, FactsBuffer, Unverified};
use crate::limit::{CostRule, Limit, OnInvalid, WeightedMatch};
use crate::match_spec::{Condition, MatchSpec};
use crate::policy::{Policy, PolicyOptions, Selection};

/// The names of the limits that apply to a request whose `jwt.sub` and `jwt.plan` did not verify,
/// and whether each refuses because of that.
fn selected(policy: &Policy, attributes: &[(&str, &str)]) -> Vec<(String, bool)> {
    selected_by(policy, attributes, |facts, selection| policy.select(facts, 1, selection))
}

/// [`selected`], by another way to select.
fn selected_by(
    policy: &Policy,
    attributes: &[(&str, &str)],
    select: impl FnOnce(&Facts<'_>, &mut Selection),
) -> Vec<(String, bool)> {
    let mut facts = policy.facts(FactsBuffer::default());
    for (name, value) in attributes {
        facts.set(name, value).unwrap();
    }
    for name in ["jwt.sub", "jwt.plan", "user"] {
        if let Some(id) = policy.attribute(name) {
            facts.set_unverified(id, Unverified::Expired);
        }
    }
    let mut selection = Selection::default();
    select(&facts, &mut selection);
    let rows = policy.selected(&selection).map(|one| {
        assert!(one.missing || !one.unverified);
        (one.limit.name.to_string(), one.unverified)
    });
    rows.collect()
}

fn names(rows: &[(String, bool)]) -> Vec<(&str, bool)> {
    rows.iter().map(|(name, unverified)| (&**name, *unverified)).collect()
}

#[test]
fn keys_are_read_up_to_the_first_that_is_complete() {
    let mut after = Limit::new("after", &["jwt.sub"], per_minute(1));
    after.fallback_keys = [["ip".into()].into()].into();
    let mut before = Limit::new("before", &["ip"], per_minute(1));
    before.fallback_keys = [["jwt.sub".into()].into()].into();
    let mut missing = after.clone();
    (missing.name, missing.on_invalid) = ("missing".into(), OnInvalid::AsMissing);
    let policy = policy(vec![after, before, missing], PolicyOptions::default());
    let with_ip = selected(&policy, &[("ip", "192.0.2.1")]);
    assert_eq!(names(&with_ip), [("after", true), ("before", false), ("missing", false)]);
    let without = selected(&policy, &[]);
    assert_eq!(names(&without), [("after", true), ("before", true)]);
}

#[test]
fn a_tier_that_is_looked_up_by_a_claim_is_read() {
    let mut tiered = Limit::new("tiered", &[], None);
    tiered.tiers = [("pro".into(), per_minute(1))].into();
    let plain = Limit::new("plain", &[], per_minute(1));
    let mut options = PolicyOptions::default();
    options.attributes.push("user".into());
    let policy = policy(vec![tiered, plain], options);
    assert_eq!(names(&selected(&policy, &[])), [("tiered", true), ("plain", false)]);
}

#[test]
fn costs_by_a_claim_are_read_where_they_could_count() {
    let is = |attribute: &str, pattern: &str| Condition {
        attribute: attribute.into(),
        patterns: vec![pattern.into()],
    };
    let conditions = vec![is("path", "/embed"), is("jwt.plan", "free")];
    let match_spec = MatchSpec { conditions, not: vec![] };
    let mut limit = Limit::new("weighted", &[], per_minute(1));
    limit.cost = CostRule::ByMatch([WeightedMatch { match_spec, units: 10 }].into());
    let policy = policy(vec![limit], PolicyOptions::default());
    assert_eq!(names(&selected(&policy, &[("path", "/embed")])), [("weighted", true)]);
    assert_eq!(names(&selected(&policy, &[("path", "/other")])), [("weighted", false)]);
}

/// A limit that refuses for its token refuses whatever path a client means.
#[test]
fn a_client_that_asks_sees_which_limits_refuse_its_token() {
    let of = |attribute: &str, pattern: &str| Condition {
        attribute: attribute.into(),
        patterns: vec![pattern.into()],
    };
    let spec = |conditions, not| MatchSpec { conditions, not };
    let limit = |name, key: &[&str]| Limit::new(name, key, per_minute(1));
    let mut lenient = limit("lenient", &["jwt.sub"]);
    lenient.on_invalid = OnInvalid::AsMissing;
    let limits = vec![
        (limit("by-claim", &["jwt.sub"]), MatchSpec::default()),
        (limit("in-a", &["jwt.sub"]), spec(vec![of("path", "/a")], vec![])),
        (limit("not-a", &["jwt.sub"]), spec(vec![], vec![vec![of("path", "/a")]])),
        (limit("gold", &[]), spec(vec![of("jwt.plan", "gold"), of("path", "/a")], vec![])),
        (limit("each-path", &["jwt.sub", "path"]), MatchSpec::default()),
        (lenient, MatchSpec::default()),
        (limit("all", &[]), MatchSpec::default()),
    ];
    let policy = Policy::new(limits, PolicyOptions::default()).unwrap();
    let asked = |attributes: &[(&str, &str)], open: &[&str]| {
        selected_by(&policy, attributes, |facts, selection| {
            policy.select_possible(facts, open, 9, selection);
        })
    };
    let open = asked(&[], &["path"]);
    let refusing = [("by-claim", true), ("in-a", true), ("not-a", true), ("gold", true)];
    assert_eq!(names(&open), [&refusing[..], &[("all", false)]].concat());
    for path in ["/a", "/b"] {
        let named = [("path", path)];
        assert_eq!(asked(&named, &[]), selected(&policy, &named), "{path}");
    }
}
