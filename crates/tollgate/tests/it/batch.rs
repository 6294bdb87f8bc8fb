//! Batches of requests, each with one limit.

use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, setup};
use crate::now;
use std::time::Duration;
use tollgate::engine::{
    DenyCache, Gate, GateBuffers, GateSetup, SingleCheck, SingleVerdict, Source, policy,
};
use tollgate::store::ParamsId;
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_policy::policy::Selection;

/// One unit per `period_s` seconds, with this burst.
fn params(period_s: u64, burst: u64) -> LimitParams {
    let rate = Rate::try_new(1, period_s * 1_000_000).unwrap();
    LimitParams::Gcra(Gcra::try_new(rate, Some(burst)).unwrap())
}

/// A check: a user under the first limit, or a key with an inline limit.
enum BatchItem<'a> {
    Limit(&'a str, Intent),
    Own(&'a str, &'a LimitParams, u64),
}
use BatchItem::{Limit, Own};

fn check_batch(gate: &Gate<Faulty>, asked: &[BatchItem<'_>]) -> Vec<SingleVerdict> {
    let rules = gate.rules();
    let selections: Vec<Selection> = asked
        .iter()
        .map(|one| {
            let (mut selection, mut facts) =
                (Selection::default(), rules.facts(Default::default()));
            if let Limit(user, _) = one {
                facts.set("user", user).unwrap();
                rules.policy().select_one(0, &facts, 1, &mut selection);
            }
            selection
        })
        .collect();
    let singles: Vec<SingleCheck<'_>> = asked
        .iter()
        .zip(&selections)
        .map(|(one, selection)| match *one {
            Limit(_, intent) => SingleCheck::Limit { selection, intent },
            Own(key, params, cost) => SingleCheck::Inline {
                key: key.as_bytes(),
                params,
                params_id: ParamsId::default(),
                cost,
            },
        })
        .collect();
    let mut work = GateBuffers::default();
    now(gate.check_batch(&rules, NOW_US, singles, &mut work));
    work.verdicts().to_vec()
}

fn shown(decided: &[SingleVerdict]) -> Vec<(bool, u64, Source)> {
    decided.iter().map(|one| (one.allowed, one.outcome.remaining, one.source)).collect()
}

const TWO: &str = "  - {name: l, match: {path: /x}, key: [user], rate: 2/h, algorithm: gcra}\n";
use Intent::{Peek, Take};

#[test]
fn all_of_them_are_one_call_and_decided_in_order() {
    let gate = Gate::new(setup(TWO), Faulty::default()).unwrap();
    let one = params(3600, 1);
    let asked = [
        Limit("a", Take),
        Own("a", &one, 1),
        Limit("a", Peek),
        Own("a", &one, 1),
        Own("a", &one, 0),
        Limit("a", Take),
        Limit("a", Take),
        Limit("", Take),
        Own("b", &one, 2),
    ];
    let source = Source::Store;
    assert_eq!(
        shown(&check_batch(&gate, &asked)),
        [
            (true, 1, source),
            (true, 0, source),
            (true, 1, source),
            (false, 0, source),
            (true, 0, source),
            (true, 0, source),
            (false, 0, source),
            (true, 0, Source::None),
            (false, 1, source),
        ]
    );
    assert_eq!(gate.store().calls(), 1);
    let counts = gate.counts()[0].1;
    assert_eq!((counts.admitted, counts.refused), (2, 1), "a peek does not count");
    let (name, own) = &gate.counts()[1];
    assert_eq!((&**name, own.admitted, own.refused), ("CL.THROTTLE", 1, 2), "nor a look");
    assert!(check_batch(&gate, &[Limit("", Take)])[0].allowed);
    assert_eq!(gate.store().calls(), 1, "an empty batch makes no call");
}

#[test]
fn a_key_keeps_what_it_spent_when_its_numbers_change() {
    let gate = Gate::new(setup(TWO), Faulty::default()).unwrap();
    let (hour, minute) = (params(3600, 2), params(60, 100));
    let asked = [Own("a", &hour, 1), Own("a", &minute, 1), Own("a", &hour, 1)];
    let decided = check_batch(&gate, &asked);
    // An hourly unit is a debt of an hour, or sixty of a hundred units per minute. After one more
    // minute, a second hourly unit does not fit.
    assert_eq!(decided[0].outcome.remaining, 1);
    assert_eq!(decided[1].outcome.remaining, 39);
    assert_eq!((decided[2].allowed, decided[2].outcome.retry_after_us), (false, Some(60_000_000)));
}

#[test]
fn refusals_of_limits_are_remembered_and_those_of_callers_numbers_are_asked_again() {
    let gate = Gate::new(setup(TWO), Faulty::default()).unwrap();
    let gate = gate.with_deny_cache(DenyCache::new(100, Duration::from_secs(1)));
    let one = params(3600, 1);
    let spend = [Limit("a", Take), Limit("a", Take), Limit("a", Take), Own("a", &one, 1)];
    check_batch(&gate, &spend);
    let before = gate.store().calls();
    let decided = check_batch(&gate, &[Limit("a", Take), Limit("b", Take)]);
    assert_eq!(shown(&decided), [(false, 0, Source::DenyCache), (true, 1, Source::Store)]);
    check_batch(&gate, &[Limit("a", Take)]);
    assert_eq!(gate.store().calls() - before, 1);
    assert_eq!(gate.counts()[0].1.deny_cache_hits, 2);
    assert!(!check_batch(&gate, &[Own("a", &one, 1)])[0].allowed);
    assert_eq!(gate.store().calls() - before, 2);
}

/// A gate whose store fails, with this failure policy for inline limits.
fn failing(on_store_failure: &str) -> Gate<Faulty> {
    let limit = "{name: l, key: [user], rate: 2/h, on_store_failure: closed}";
    let text = format!("on_store_failure: {on_store_failure}\nlimits: [{limit}]");
    let setup = GateSetup::of(&policy::compile(text.as_bytes()).unwrap());
    let gate = Gate::new(setup, Faulty::default()).unwrap();
    gate.store().set_down(true);
    gate
}

#[test]
fn without_the_store_limits_answer_for_themselves_and_the_caller_says_for_the_rest() {
    let gate = failing("open");
    let four = params(3600, 4);
    let asked = [Limit("a", Take), Own("a", &four, 1)];
    let decided = check_batch(&gate, &asked);
    assert_eq!(shown(&decided), [(false, 0, Source::FailClosed), (true, 4, Source::FailOpen)]);
    assert_eq!(decided[0].outcome.retry_after_us, Some(1_000_000));
    let gate = failing("closed");
    let decided = check_batch(&gate, &asked);
    assert_eq!(shown(&decided)[1], (false, 0, Source::FailClosed));
    assert_eq!(gate.counts()[0].1.fail_closed, 1);
    assert_eq!(gate.counts()[1].1.fail_closed, 1);
    // Half the burst of four, and half the rate.
    let gate = failing("{local: {nodes: 2}}");
    let decided = check_batch(&gate, &[Own("a", &four, 1), Own("a", &four, 1), Own("a", &four, 1)]);
    assert_eq!(decided.iter().map(|one| one.allowed).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(decided[2].source, Source::LocalFallback);
    assert_eq!(decided[2].outcome.retry_after_us, Some(7_200_000_000));
    // Half of a burst of one is zero.
    let one = params(3600, 1);
    assert!(!check_batch(&gate, &[Own("b", &one, 1)])[0].allowed);
}
