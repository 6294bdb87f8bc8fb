//! Tests of the class of a request.

use crate::compile;
use crate::limit::Mode;
use crate::match_spec::MatchSpec;
use crate::policy::{Policy, PolicyOptions, Selection};
use crate::settings::AmbiguousPaths;
use proptest::prelude::*;

fn policy(text: &str) -> Policy {
    policy_in(text, None)
}

fn policy_in(text: &str, mode: Option<Mode>) -> Policy {
    let compiled = compile(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
    let shed = compiled.shed.unwrap();
    let mut limits = compiled.limits;
    limits.extend(shed.limits().into_iter().map(|limit| (limit, MatchSpec::default())));
    if let Some(mode) = mode {
        limits.iter_mut().for_each(|(limit, _)| limit.mode = mode);
    }
    let options = PolicyOptions { shed: Some(shed), ..PolicyOptions::default() };
    Policy::new(limits, options).unwrap()
}

fn class(policy: &Policy, attributes: &[(&str, &str)], is_trusted: bool) -> Option<usize> {
    let mut facts = policy.facts(Default::default());
    facts.set_ambiguous_paths(AmbiguousPaths::MatchAll);
    for (name, value) in attributes {
        facts.set(name, value).unwrap();
    }
    if is_trusted {
        facts.set_peer_trusted();
    }
    policy.class(&facts)
}

const CLASSES: &str = r#"
classes:
  - {name: critical, match: {path: "/v1/charges/**", method: POST}}
  - {name: normal, default: true}
  - {name: batch, match: {path: "/v1/reports/**"}}
  - {name: test, match: {header.x-mode: test}}
shed:
  fleet: {capacity: 10, reserve: {critical: 20%, batch: 10%}}
  fair_by: [user, ip]
  lower_by: header.x-priority
"#;

#[test]
fn the_first_class_that_matches_counts() {
    let policy = policy(CLASSES);
    let of = |attributes: &[(&str, &str)]| class(&policy, attributes, false).unwrap();
    assert_eq!(of(&[("path", "/v1/charges/1"), ("method", "POST")]), 0);
    assert_eq!(of(&[("path", "/v1/charges/1"), ("method", "GET")]), 1);
    assert_eq!(of(&[]), 1);
    assert_eq!(of(&[("path", "/v1/reports/x")]), 2);
    assert_eq!(of(&[("path", "/v1/reports/x"), ("header.x-mode", "test")]), 2);
    assert_eq!(of(&[("path", "/"), ("header.x-mode", "test")]), 3);
    let names: Vec<&str> = policy.classes().collect();
    assert_eq!(names, ["critical", "normal", "batch", "test"]);
}

#[test]
fn a_header_lowers_and_only_a_trusted_proxy_raises() {
    let policy = policy(CLASSES);
    let charge = [("path", "/v1/charges/1"), ("method", "POST")];
    let with = |named: &'static str, base: &[(&'static str, &'static str)], is_trusted| {
        let mut attributes = base.to_vec();
        attributes.push(("header.x-priority", named));
        class(&policy, &attributes, is_trusted).unwrap()
    };
    assert_eq!(with("batch", &charge, false), 2);
    assert_eq!(with("critical", &[], false), 1);
    assert_eq!(with("critical", &[], true), 0);
    assert_eq!(with("batch", &charge, true), 2);
    assert_eq!(with("Critical", &[], true), 1, "names are compared exactly");
    assert_eq!(with("nobody", &charge, true), 0);
}

/// The attributes of classes are identifying, so a request with two values is refused as ambiguous.
#[test]
fn attributes_of_classes_identify() {
    let policy = policy(CLASSES);
    for name in ["header.x-mode", "header.x-priority", "user", "path"] {
        let id = policy.attribute(name).unwrap_or_else(|| panic!("{name} is not read"));
        assert!(policy.identifies(id), "{name}");
    }
}

/// One of the readings is under `/v1/charges`; the other is not.
#[test]
fn the_least_important_reading_of_a_path_counts() {
    let policy = policy(CLASSES);
    let post = |path| class(&policy, &[("path", path), ("method", "POST")], false).unwrap();
    assert_eq!(post("/v1/charges/x"), 0);
    assert_eq!(post("/v1/reports/%2e%2e/charges/x"), 2);
}

#[test]
fn a_fleet_counts_a_request_for_its_class_and_all_above() {
    let policy = policy(CLASSES);
    let selected = |class: usize| {
        let mut selection = Selection::default();
        policy.select_fleet(class, &mut selection);
        let all: Vec<String> =
            policy.selected(&selection).map(|one| one.limit.name.to_string()).collect();
        assert!(policy.selected(&selection).all(|one| one.cost == 1 && one.key.is_empty()));
        all
    };
    let levels = ["shed/fleet", "shed/fleet/normal", "shed/fleet/test"];
    assert_eq!(selected(0), levels[..1]);
    assert_eq!(selected(1), levels[..2]);
    assert_eq!(selected(2), levels[..2]);
    assert_eq!(selected(3), levels);
}

#[test]
fn shedders_that_are_off_ask_nothing() {
    let off = policy_in(CLASSES, Some(Mode::Off));
    assert_eq!(class(&off, &[], false), None);
    let mut selection = Selection::default();
    off.select_fleet(3, &mut selection);
    assert!(selection.is_empty());
    let shadow = policy_in(CLASSES, Some(Mode::Shadow));
    assert_eq!(class(&shadow, &[], false), Some(1));
}

#[test]
fn clients_are_told_apart_by_all_attributes() {
    let policy = policy(CLASSES);
    let secret = std::hash::RandomState::new();
    let client = |attributes: &[(&str, &str)]| {
        let mut facts = policy.facts(Default::default());
        for (name, value) in attributes {
            facts.set(name, value).unwrap();
        }
        policy.client_hash(&facts, &secret)
    };
    let ann = client(&[("user", "ann"), ("ip", "10.0.0.1")]);
    assert_eq!(ann, client(&[("user", "ann"), ("ip", "10.0.0.1")]));
    assert_ne!(ann, client(&[("user", "ann"), ("ip", "10.0.0.2")]));
    assert_ne!(ann, client(&[("user", "ann")]));
    assert_ne!(client(&[("user", "ann")]), client(&[("user", "bob")]));
    assert_eq!(client(&[]), 0, "nothing is known of the client");
}

proptest! {
    /// An untrusted client cannot raise its class with anything but path and method.
    #[test]
    fn headers_never_raise_a_class(
        path in prop::sample::select(vec!["/v1/charges/1", "/v1/reports/2", "/"]),
        method in prop::sample::select(vec!["GET", "POST"]),
        priority in prop::sample::select(vec!["", "critical", "normal", "batch", "test", "x"]),
    ) {
        let policy = policy(CLASSES);
        let plain = class(&policy, &[("path", path), ("method", method)], false).unwrap();
        let attributes = [("path", path), ("method", method), ("header.x-priority", priority)];
        prop_assert!(class(&policy, &attributes, false).unwrap() >= plain);
    }
}
