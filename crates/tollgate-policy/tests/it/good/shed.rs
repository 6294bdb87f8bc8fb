//! The compiled form of `classes` and `shed`.

use super::good;
use tollgate_core::algorithm::Concurrency;
use tollgate_core::{Algorithm, LimitParams};
use tollgate_policy::compile;
use tollgate_policy::limit::{Mode, OnStoreFailure, Selector};
use tollgate_policy::shed::{Adaptive, ShedPolicy};

fn shed(text: &str) -> ShedPolicy {
    let compiled = compile(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
    compiled.shed.expect("the file has `shed`")
}

#[test]
fn all_fields() {
    let shed = good("shed").shed.unwrap();
    let names: Vec<&str> = shed.classes.iter().map(|class| &*class.name).collect();
    assert_eq!(names, ["critical", "normal", "batch", "test"]);
    assert_eq!(shed.default_class, 1);
    assert!(shed.classes[1].match_spec.is_none());
    let critical = shed.classes[0].match_spec.as_ref().unwrap();
    assert_eq!((critical.conditions.len(), critical.not.len()), (2, 1));
    let fleet = shed.fleet.as_ref().unwrap();
    assert_eq!((fleet.capacity, &*fleet.reserved), (1_000, &[200, 50, 0, 0][..]));
    assert_eq!((fleet.ttl_us, fleet.assume_us), (20_000_000, 200_000));
    let Adaptive { min, max, .. } = shed.adaptive.unwrap();
    assert_eq!((min, max), (4, 512));
    assert_eq!(&*shed.fair_by, ["user".into(), "ip".into()]);
    assert_eq!(shed.lower_by.as_deref(), Some("header.x-priority"));
    assert_eq!(shed.mode, Mode::Shadow);
}

/// One limit for each class with less capacity than the class above. If the store fails, the limits
/// admit.
#[test]
fn a_fleet_is_concurrency_limits() {
    let limits = good("shed").shed.unwrap().limits();
    let slots =
        |count| Some(LimitParams::Concurrency(Concurrency::try_new(count, 20_000_000).unwrap()));
    let expected = [
        ("shed/fleet", Selector::Class(0), slots(1_000)),
        ("shed/fleet/normal", Selector::Class(1), slots(800)),
        ("shed/fleet/batch", Selector::Class(2), slots(750)),
        ("shed/adaptive", Selector::Never, None),
    ];
    assert_eq!(limits.len(), expected.len());
    for (limit, (name, selector, params)) in limits.iter().zip(expected) {
        assert_eq!((&*limit.name, limit.selector, limit.params), (name, selector, params));
        assert_eq!(limit.on_store_failure, OnStoreFailure::Open);
        assert_eq!(limit.mode, Mode::Shadow);
    }
}

#[test]
fn defaults() {
    let shed = shed("on_store_failure: closed\nshed: {adaptive: {}, fleet: {capacity: 7}}");
    assert_eq!((shed.classes.len(), &*shed.classes[0].name), (1, "default"));
    let Adaptive { min, max, .. } = shed.adaptive.unwrap();
    assert_eq!((min, max), (4, 512));
    let fleet = shed.fleet.as_ref().unwrap();
    assert_eq!(
        (&*fleet.reserved, fleet.ttl_us, fleet.assume_us),
        (&[0][..], 30_000_000, 1_000_000)
    );
    assert_eq!(shed.limits()[0].on_store_failure, OnStoreFailure::Open);
    assert!(compile(b"limits: []").unwrap().shed.is_none());
}

/// If only one of `min` and `max` is set, a default that would contradict it moves.
#[test]
fn one_bound_alone() {
    let bounds = |text: &str| {
        let Adaptive { min, max, .. } = shed(text).adaptive.unwrap();
        (min, max)
    };
    assert_eq!(bounds("shed: {adaptive: {max: 2}}"), (2, 2));
    assert_eq!(bounds("shed: {adaptive: {min: 5000}}"), (5_000, 5_000));
}

#[test]
fn without_a_default_the_last_class_takes_the_rest() {
    let text = "classes: [{name: a, match: {path: /a}}, {name: b, match: {path: /b}}]\nshed: {adaptive: {}}";
    assert_eq!(shed(text).default_class, 1);
}

/// A share is rounded up, and the rest is never negative.
#[test]
fn shares_are_rounded_up() {
    let text = "classes: [{name: a, match: {path: /a}}, {name: b, match: {path: /b}}, {name: c}]
shed: {fleet: {capacity: 3, reserve: {a: 34%, b: 66%}}}";
    let slots: Vec<u64> =
        shed(text).limits().iter().map(|limit| limit.params.unwrap().capacity()).collect();
    assert_eq!(slots, [3, 1, 0]);
}
