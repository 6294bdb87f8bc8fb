//! Candidates in batches and in checks of several descriptors: they are counted as in single
//! checks, and no answer shows them.

use super::{TRIALS, TrialStep, fixed_steps};
use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, setup};
use crate::now;
use std::time::Duration;
use tollgate::MemoryStore;
use tollgate::engine::{
    CandidateCounts, DenyCache, DescriptorMode, Gate, GateBuffers, MultiCheck, SingleCheck,
    policy::Facts,
};
use tollgate::store::{LeaseStore, ParamsId};
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_policy::policy::Selection;

const USER: &str = "  - {name: user, key: [user], rate: 1/h, candidate: {rate: 3/h}}\n";

fn with_facts<S: LeaseStore, T>(
    gate: &Gate<S>,
    values: &[(&str, &str)],
    run: impl FnOnce(&Facts<'_>) -> T,
) -> T {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    values.iter().for_each(|(name, value)| facts.set(name, value).unwrap());
    run(&facts)
}

fn counts<S: LeaseStore>(gate: &Gate<S>) -> CandidateCounts {
    gate.candidate_counts()[0].1
}

/// The remaining units of the limit at `index` and of its candidate.
fn left<S: LeaseStore>(gate: &Gate<S>, values: &[(&str, &str)], index: usize) -> (u64, u64) {
    let rules = gate.rules();
    let explained =
        with_facts(gate, values, |facts| now(gate.explain(&rules, NOW_US, facts, 1)).limits);
    let decision = &explained[index].decisions[0];
    (decision.row.outcome.remaining, decision.candidate.unwrap().outcome.remaining)
}

/// A selection as the Redis commands create it.
fn select<S: LeaseStore>(gate: &Gate<S>, limit: usize, facts: &Facts<'_>, cost: u64) -> Selection {
    let (rules, mut selection) = (gate.rules(), Selection::default());
    rules.policy().select_one(limit, facts, cost, &mut selection);
    rules.policy().select_candidates(&mut selection, |_| true);
    selection
}

fn values(step: &TrialStep) -> [(&'static str, String); 3] {
    let plan = ["free", "pro"][step.3];
    [
        ("user", format!("u{}", step.1)),
        ("ip", format!("10.0.0.{}", step.2)),
        ("plan", plan.to_owned()),
    ]
}

/// Batches and descriptors decide and count like single checks, for every pair of a limit and its
/// candidate.
#[test]
fn every_way_to_ask_counts_the_same() {
    for (n, [limit, candidate, _]) in TRIALS.iter().enumerate() {
        let file = format!("  - {{name: l, {limit}, candidate: {{{candidate}}}}}\n");
        let [checked, batched, described] =
            [(); 3].map(|()| Gate::new(setup(&file), MemoryStore::default()).unwrap());
        let mut at_us = NOW_US;
        for step in fixed_steps(n as u64 + 20, 120) {
            at_us += step.0;
            let values = values(&step);
            let values = values.each_ref().map(|(name, value)| (*name, &**value));
            let rules = [&checked, &batched, &described].map(|gate| gate.rules());
            let mut work = GateBuffers::default();
            let allowed = with_facts(&checked, &values, |facts| {
                now(checked.check(&rules[0], at_us, facts, step.4, &mut work)).allowed
            });
            let selection =
                with_facts(&batched, &values, |facts| select(&batched, 0, facts, step.4));
            let single = SingleCheck::Limit { selection: &selection, intent: Intent::Take };
            now(batched.check_batch(&rules[1], at_us, [single], &mut work));
            assert_eq!(work.verdicts().len(), 1);
            assert_eq!(work.verdicts()[0].allowed, allowed, "{limit}");
            let mut asked = MultiCheck::default();
            asked.begin();
            with_facts(&described, &values, |facts| {
                asked.add(&rules[2], facts, step.4, DescriptorMode::Enforce);
            });
            asked.add_candidates(&rules[2]);
            let decided = now(described.check_multi(&rules[2], at_us, &asked, &mut work));
            assert_eq!((decided.verdict.allowed, decided.verdict.rows.len()), (allowed, 1));
            assert_eq!(decided.rows(0).count(), 1, "the candidate has no row");
        }
        let expected = counts(&checked);
        assert!(expected.would_refuse + expected.would_admit > 0, "{limit}: {expected:?}");
        assert_eq!([counts(&batched), counts(&described)], [expected; 2], "{limit}");
    }
}

/// Each check gets its own rows, also with candidates between the limits, and if the deny cache or
/// no limit answers some checks.
#[test]
fn a_batch_of_all_kinds_keeps_its_order() {
    let file = format!("{USER}  - {{name: ip, key: [ip], rate: 2/h}}\n");
    let gate = Gate::new(setup(&file), Faulty::default()).unwrap();
    let gate = gate.with_deny_cache(DenyCache::new(1_000, Duration::from_secs(1)));
    let rules = gate.rules();
    let (user, ip) = (("user", "1"), ("ip", "10.0.0.1"));
    let selections = [
        with_facts(&gate, &[user], |facts| select(&gate, 0, facts, 1)),
        Selection::default(),
        with_facts(&gate, &[ip], |facts| select(&gate, 1, facts, 1)),
    ];
    let rate = Rate::try_new(1, 3_600_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, Some(9)).unwrap());
    let ask = || {
        let inline = SingleCheck::Inline {
            key: b"k",
            params: &params,
            params_id: ParamsId::default(),
            cost: 1,
        };
        let limit = |selection| SingleCheck::Limit { selection, intent: Intent::Take };
        let asked = [limit(&selections[0]), limit(&selections[1]), inline, limit(&selections[2])];
        let mut work = GateBuffers::default();
        now(gate.check_batch(&rules, NOW_US, asked, &mut work));
        let shown = work.verdicts().iter();
        shown.map(|one| (one.allowed, one.outcome.limit)).collect::<Vec<_>>()
    };
    assert_eq!(ask(), [(true, 1), (true, 0), (true, 9), (true, 2)]);
    assert_eq!(ask(), [(false, 1), (true, 0), (true, 9), (true, 2)]);
    for _ in 0..3 {
        // From here on, the deny cache answers for the second limit, which has no candidate.
        assert_eq!(ask(), [(false, 1), (true, 0), (true, 9), (false, 2)]);
    }
    let counts = counts(&gate);
    assert_eq!((counts.same, counts.would_refuse, counts.would_admit), (3, 0, 2));
    assert_eq!(left(&gate, &[user, ip], 0), (0, 0));
}

#[test]
fn descriptors_that_only_look_charge_no_candidate() {
    let gate = Gate::new(setup(USER), MemoryStore::default()).unwrap();
    let rules = gate.rules();
    let ask = |modes: &[DescriptorMode]| {
        let (mut asked, mut work) = (MultiCheck::default(), GateBuffers::default());
        for mode in modes {
            asked.begin();
            with_facts(&gate, &[("user", "1")], |facts| asked.add(&rules, facts, 1, *mode));
        }
        asked.add_candidates(&rules);
        now(gate.check_multi(&rules, NOW_US, &asked, &mut work)).verdict.allowed
    };
    assert!(ask(&[DescriptorMode::Peek]));
    assert_eq!((counts(&gate).same, left(&gate, &[("user", "1")], 0)), (0, (1, 3)));
    assert!(ask(&[DescriptorMode::Peek, DescriptorMode::Enforce]));
    assert_eq!((counts(&gate).same, left(&gate, &[("user", "1")], 0)), (1, (0, 2)));
    assert!(!ask(&[DescriptorMode::Enforce, DescriptorMode::Enforce]), "two units: none is left");
    assert_eq!((counts(&gate).would_admit, left(&gate, &[("user", "1")], 0)), (1, (0, 0)));
}

#[test]
fn a_refund_reaches_the_candidate_and_shows_the_limit_alone() {
    let gate = Gate::new(setup(USER), MemoryStore::default()).unwrap();
    let rules = gate.rules();
    let mut asked = MultiCheck::default();
    asked.begin();
    with_facts(&gate, &[("user", "1")], |facts| {
        asked.add(&rules, facts, 1, DescriptorMode::Enforce)
    });
    asked.add_candidates(&rules);
    let mut work = GateBuffers::default();
    assert!(now(gate.check_multi(&rules, NOW_US, &asked, &mut work)).verdict.allowed);
    let late = gate.check_multi_without_store(&rules, NOW_US, &asked, &mut work);
    assert_eq!(late.verdict.rows.len(), 1, "a failure policy shows no candidate either");
    assert_eq!(left(&gate, &[("user", "1")], 0), (0, 2));
    let refunded = now(gate.refund_multi(&rules, NOW_US, &asked)).unwrap();
    assert_eq!((refunded.verdict.rows.len(), refunded.rows(0).count()), (1, 1));
    assert_eq!(left(&gate, &[("user", "1")], 0), (1, 3));
}
