//! Explanations agree with selection, and name the condition that fails.

use super::*;

fn condition(attribute: &str, patterns: &[&str]) -> Condition {
    let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    Condition { attribute: attribute.to_owned(), patterns }
}

/// Returns a limit by user for POST requests under /api, except by robots; and others without
/// conditions.
fn explained_policy() -> Policy {
    let spec = MatchSpec {
        conditions: vec![condition("method", &["POST"]), condition("path", &["/api/**", "/x"])],
        not: vec![vec![], vec![condition("header.user-agent", &["robot*"])]],
    };
    let mut off = Limit::new("off", &[], per_minute(1));
    off.mode = Mode::Off;
    let mut tiered = Limit::new("tiered", &["user"], per_minute(1));
    tiered.tiers = Box::new([("pro".into(), None)]);
    let limits = vec![
        (Limit::new("api", &["user", "ip"], per_minute(1)), spec),
        (off, MatchSpec::default()),
        (tiered, MatchSpec::default()),
    ];
    let options = PolicyOptions { tier_attribute: Some("plan".into()), ..Default::default() };
    Policy::new(limits, options).unwrap()
}

fn why(policy: &Policy, attributes: &[(&str, &str)], limit: usize) -> String {
    let facts = facts(policy, attributes);
    format!("{:?}", policy.explain(&facts)[limit].applicability)
}

#[test]
fn the_first_condition_that_fails_is_named() {
    let policy = explained_policy();
    let post = ("method", "post");
    assert_eq!(
        why(&policy, &[post, ("path", "/y/./z")], 0),
        r#"Unmet { attribute: "path", patterns: ["/api/**", "/x"], value: Some("/y/z") }"#
    );
    assert_eq!(
        why(&policy, &[("path", "/x")], 0),
        r#"Unmet { attribute: "method", patterns: ["POST"], value: None }"#
    );
    assert_eq!(
        why(&policy, &[post, ("path", "/x"), ("header.user-agent", "robot 1")], 0),
        r#"Excluded { conditions: [Condition { attribute: "header.user-agent", patterns: ["robot*"] }] }"#
    );
    assert_eq!(
        why(&policy, &[post, ("path", "/x"), ("user", "42")], 0),
        r#"KeyMissing { attributes: ["ip"] }"#
    );
    let all = [post, ("path", "/x"), ("user", "42"), ("ip", "10.0.0.1")];
    assert_eq!(why(&policy, &all, 0), "Applies");
    assert_eq!(why(&policy, &all, 1), "Off");
    assert_eq!(why(&policy, &all, 2), "Applies");
    assert_eq!(why(&policy, &[("user", "42"), ("plan", "pro")], 2), "Unlimited");
}

#[test]
fn an_address_is_shown_whole_and_an_api_key_hashed() {
    let spec = |attribute| MatchSpec {
        conditions: vec![condition(attribute, &[if attribute == "ip" { "::1" } else { "k-*" }])],
        not: vec![],
    };
    let limits = vec![
        (Limit::new("local", &["ip"], per_minute(1)), spec("ip")),
        (Limit::new("key", &[], per_minute(1)), spec("api_key")),
    ];
    let policy = Policy::new(limits, PolicyOptions::default()).unwrap();
    let given = [("ip", "2001:db8::17"), ("api_key", "secret")];
    assert!(why(&policy, &given, 0).contains("2001:db8::17"), "not its network");
    let shown = why(&policy, &given, 1);
    assert!(shown.contains("2bb80d537b1da3e38bd30361aa855686"), "{shown}");
}

/// The choices for a generated limit: a match on path and method, an exclusion, a key.
type Generated = (u8, u8, bool, u8, bool);

fn generated((path, method, has_not, key, is_off): Generated, name: usize) -> (Limit, MatchSpec) {
    let paths: &[&[&str]] = &[&[], &["/a"], &["/a/**"], &["/*/b", "/c"], &["**/b"]];
    let methods: &[&[&str]] = &[&[], &["GET"], &["P*"]];
    let keys: &[&[&str]] = &[&[], &["user"], &["user", "ip"], &["ip"]];
    let mut conditions = Vec::new();
    for (attribute, patterns) in
        [("path", paths[usize::from(path) % 5]), ("method", methods[usize::from(method) % 3])]
    {
        if !patterns.is_empty() {
            conditions.push(condition(attribute, patterns));
        }
    }
    let not = vec![condition("user", &["1"]), condition("method", &["GET"])];
    let not = if has_not { vec![not] } else { vec![] };
    let mut limit =
        Limit::new(&format!("l{name}"), keys[usize::from(key) % 4], per_minute(name as u64 + 1));
    limit.on_missing = [OnMissing::Skip, OnMissing::Refuse, OnMissing::Share][name % 3];
    limit.tiers =
        if name.is_multiple_of(2) { Box::new([("pro".into(), None)]) } else { Box::default() };
    limit.mode = if is_off { Mode::Off } else { Mode::Enforce };
    (limit, MatchSpec { conditions, not })
}

proptest! {
    /// The index finds limits by path, and an explanation tests every condition. Both must agree.
    #[test]
    fn a_limit_applies_if_and_only_if_it_is_selected(
        limits in prop::collection::vec(any::<Generated>(), 1..8),
        path in prop::sample::select(vec!["", "/a", "/a/b", "/x/b", "/c", "/a/%2e/b", "/a%2Fb"]),
        method in prop::sample::select(vec!["", "GET", "POST"]),
        user in prop::sample::select(vec!["", "1", "2"]),
        ip in prop::sample::select(vec!["", "10.0.0.1"]),
        plan in prop::sample::select(vec!["", "pro", "free"]),
    ) {
        let limits = limits.into_iter().enumerate().map(|(name, one)| generated(one, name));
        let options = PolicyOptions { tier_attribute: Some("plan".into()), ..Default::default() };
        let policy = Policy::new(limits.collect(), options).unwrap();
        let mut facts = policy.facts(FactsBuffer::default());
        facts.set_ambiguous_paths(crate::settings::AmbiguousPaths::MatchAll);
        for (name, value) in
            [("path", path), ("method", method), ("user", user), ("ip", ip), ("plan", plan)]
        {
            facts.set(name, value).unwrap();
        }
        let mut selection = Selection::default();
        policy.select(&facts, 1, &mut selection);
        let selected: Vec<usize> = policy.selected(&selection).map(|one| one.index).collect();
        for one in policy.explain(&facts) {
            let applies = one.applicability == Applicability::Applies;
            prop_assert_eq!(applies, selected.contains(&one.index), "{:?}", one);
        }
    }
}
