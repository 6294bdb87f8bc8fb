use proptest::prelude::*;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{LimitParams, Rate};

use super::glob::tests::naive;
use super::*;
use crate::limit::Limit;
use crate::policy::{Policy, PolicyOptions, Selection};

fn condition(attribute: &str, patterns: &[&str]) -> Condition {
    let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    Condition { attribute: attribute.to_owned(), patterns }
}

fn policy(specs: &[MatchSpec]) -> Policy {
    let params = LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(1, 1_000_000).unwrap()));
    let limits = specs.iter().map(|spec| (Limit::new("l", &[], Some(params)), spec.clone()));
    Policy::new(limits.collect(), PolicyOptions::default()).unwrap()
}

/// The indices of the limits that apply.
fn selected(policy: &Policy, attributes: &[(&str, &str)]) -> Vec<usize> {
    let mut facts = policy.facts(Default::default());
    for (name, value) in attributes {
        facts.set(name, value).unwrap();
    }
    let mut selection = Selection::default();
    policy.select(&facts, 1, &mut selection);
    policy.selected(&selection).map(|selected| selected.index).collect()
}

fn applies(conditions: &[Condition], not: &[Vec<Condition>], attributes: &[(&str, &str)]) -> bool {
    let spec = MatchSpec { conditions: conditions.to_vec(), not: not.to_vec() };
    !selected(&policy(&[spec]), attributes).is_empty()
}

#[test]
fn entries_are_anded_and_a_list_is_or() {
    let both = [condition("path", &["/a", "/b"]), condition("method", &["GET", "POST"])];
    assert!(applies(&both, &[], &[("path", "/b"), ("method", "GET")]));
    assert!(!applies(&both, &[], &[("path", "/c"), ("method", "GET")]));
    assert!(!applies(&both, &[], &[("path", "/b"), ("method", "PUT")]));
    assert!(applies(&[], &[], &[]));
    assert!(!applies(&[condition("user", &[])], &[], &[("user", "1")]));
    assert!(!applies(&[condition("path", &[])], &[], &[("path", "/")]));
}

#[test]
fn not_excludes_when_one_whole_map_matches() {
    let not = [
        vec![condition("path", &["/health"]), condition("method", &["GET"])],
        vec![condition("user", &["admin*"])],
    ];
    assert!(!applies(&[], &not, &[("path", "/health"), ("method", "get")]));
    assert!(applies(&[], &not, &[("path", "/health"), ("method", "post")]));
    assert!(!applies(&[], &not, &[("path", "/x"), ("user", "admin-1")]));
    assert!(applies(&[], &[vec![]], &[]), "an empty map excludes nothing");
}

#[test]
fn a_missing_attribute_never_matches() {
    assert!(!applies(&[condition("user", &["*"])], &[], &[]));
    assert!(!applies(&[condition("user", &["*"])], &[], &[("user", "")]));
    assert!(!applies(&[condition("path", &["**"])], &[], &[]));
    assert!(!applies(&[condition("ip", &["0.0.0.0/0", "::/0"])], &[], &[]));
    assert!(applies(&[], &[vec![condition("user", &["*"])]], &[]));
    let not = [vec![condition("path", &["/a"]), condition("user", &["*"])]];
    assert!(applies(&[], &not, &[("path", "/a")]));
}

#[test]
fn patterns_take_the_form_of_their_values() {
    let cases = [
        ("path", "/%61pi//x/../**", "/api/y"),
        ("path", "/a%3fb", "/a%3Fb"),
        ("path", "/caf\u{e9}", "/caf%c3%a9"),
        ("path", "/api/**", "/%61pi"),
        ("method", "get", "Get"),
        ("host", "*.Example.com", "API.example.COM"),
        ("api_key", "sk_test_*", "sk_test_1"),
    ];
    for (attribute, pattern, value) in cases {
        let conditions = [condition(attribute, &[pattern])];
        assert!(applies(&conditions, &[], &[(attribute, value)]), "{pattern} on {value}");
    }
    assert!(!applies(&[condition("user", &["Jane"])], &[], &[("user", "jane")]));
    assert!(!applies(&[condition("path", &["/api"])], &[], &[("path", "/API")]));
}

#[test]
fn networks_are_compared_before_masking() {
    let cases = [
        ("10.0.0.0/8", "10.1.2.3", true),
        ("10.0.0.0/8", "::ffff:10.1.2.3", true),
        ("10.0.0.7/8", "10.1.2.3", true),
        ("::ffff:10.0.0.0/104", "10.1.2.3", true),
        ("10.0.0.0/8", "11.1.2.3", false),
        ("192.0.2.1", "192.0.2.1:80", true),
        ("192.0.2.1", "192.0.2.2", false),
        ("2001:db8::1", "2001:db8::1", true),
        ("2001:db8::1", "2001:db8::2", false),
        ("2001:db8::/126", "2001:db8::4", false),
        ("::/0", "192.0.2.1", false),
    ];
    for (pattern, address, expected) in cases {
        let found = applies(&[condition("ip", &[pattern])], &[], &[("ip", address)]);
        assert_eq!(found, expected, "{pattern} on {address}");
    }
}

#[test]
fn a_thousand_limits_on_distinct_paths_match_a_handful() {
    let mut names = Names::default();
    let mut index = PathIndex::default();
    for limit in 0..1_000 {
        let pattern = match limit % 4 {
            0 => format!("/exact/{limit}"),
            1 => format!("/below/{limit}/**"),
            2 => format!("/inner/{limit}/*/x"),
            _ => format!("/deep/{limit}/**/x"),
        };
        let spec = MatchSpec { conditions: vec![condition("path", &[&pattern])], not: vec![] };
        index.insert(limit, &Matcher::compile(&spec, &mut names).unwrap());
    }
    let mut found = Vec::new();
    for (path, limit) in [
        ("/exact/500", 500),
        ("/below/501/a/b", 501),
        ("/inner/502/a/x", 502),
        ("/deep/503/a/b/x", 503),
    ] {
        index.find(Some(path), &mut found);
        assert_eq!(found.iter().map(|candidate| candidate.limit()).collect::<Vec<_>>(), [limit]);
    }
    index.find(Some("/other"), &mut found);
    assert!(found.is_empty());
}

#[test]
fn a_limit_found_in_two_ways_is_found_once_and_all_are_in_file_order() {
    let specs = [
        MatchSpec::default(),
        MatchSpec {
            conditions: vec![condition("path", &["/a/*", "/a/**", "/a/b", "**"])],
            not: vec![],
        },
        MatchSpec { conditions: vec![condition("path", &["/a/b"])], not: vec![] },
        MatchSpec { conditions: vec![condition("path", &["/*/b"])], not: vec![] },
        MatchSpec {
            conditions: vec![condition("path", &["/a/**"]), condition("path", &["/*/b"])],
            not: vec![],
        },
        MatchSpec::default(),
    ];
    assert_eq!(selected(&policy(&specs), &[("path", "/a/b")]), [0, 1, 2, 3, 4, 5]);
    assert_eq!(selected(&policy(&specs), &[("path", "/a/c")]), [0, 1, 5]);
    assert_eq!(selected(&policy(&specs), &[]), [0, 5]);
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let path = "(/(a|b|ab|a\\*|\\?|\\*|\\*\\*|%61|\\.\\.)){1,4}|\\*\\*|a\\*|/\\*\\*";
    let patterns = |of: &'static str| prop::collection::vec(of, 1..3);
    prop_oneof![
        4 => patterns(path).prop_map(|patterns| ("path", patterns)),
        1 => patterns("[ab*]{1,3}").prop_map(|patterns| ("user", patterns)),
        1 => patterns("GET|post|P*").prop_map(|patterns| ("method", patterns)),
        1 => patterns("10\\.0\\.0\\.[01]|10\\.0\\.0\\.0/(8|31)|::/0").prop_map(|patterns| ("ip", patterns)),
    ]
    .prop_map(|(attribute, patterns)| Condition { attribute: attribute.to_owned(), patterns })
}

fn any_spec() -> impl Strategy<Value = MatchSpec> {
    let conditions = || prop::collection::vec(any_condition(), 0..3);
    (conditions(), prop::collection::vec(prop::collection::vec(any_condition(), 1..3), 0..2))
        .prop_map(|(conditions, not)| MatchSpec { conditions, not })
}

/// Evaluates every limit against every pattern, without compiling.
fn naive_condition(condition: &Condition, attributes: &[(&str, &str)]) -> bool {
    let value =
        attributes.iter().find(|(name, value)| *name == condition.attribute && !value.is_empty());
    let Some((name, value)) = value else { return false };
    condition.patterns.iter().any(|pattern| match *name {
        "path" => {
            let pattern = path::normalise_pattern(pattern);
            naive(&pattern, &path::normalise(value), true)
        }
        "method" => naive(&pattern.to_uppercase(), &value.to_uppercase(), false),
        "ip" => {
            let network =
                if pattern.contains('/') { pattern.clone() } else { format!("{pattern}/32") };
            network.parse::<IpNet>().unwrap().contains(&value.parse::<std::net::IpAddr>().unwrap())
        }
        _ => naive(pattern, value, false),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_index_finds_what_trying_every_limit_finds(
        specs in prop::collection::vec(any_spec(), 0..8),
        path in "((/(a|b|ab|%61|\\.)){1,4}/?)?", user in "[ab]{0,2}", method in "GET|post|",
        ip in "10\\.0\\.0\\.[0-3]|11\\.0\\.0\\.0|::1|",
    ) {
        let attributes = [("path", &*path), ("user", &*user), ("method", &*method), ("ip", &*ip)];
        // A path may have several readings; the limits of every reading apply.
        let mut readings = path::readings(&path).unwrap();
        readings.push(path.clone());
        let applies = |spec: &MatchSpec, path: &str| {
            let attributes = [("path", path), attributes[1], attributes[2], attributes[3]];
            let all = |conditions: &[Condition]| conditions.iter().all(|c| naive_condition(c, &attributes));
            all(&spec.conditions) && !spec.not.iter().any(|not| all(not))
        };
        let expected: Vec<_> = (0..specs.len())
            .filter(|place| readings.iter().any(|path| applies(&specs[*place], path)))
            .collect();
        prop_assert_eq!(selected(&policy(&specs), &attributes), expected);
    }
}
