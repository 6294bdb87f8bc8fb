use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, rows, setup};
use crate::now;
use std::time::Duration;
use tollgate::engine::{DenyCache, Gate, GateBuffers, ReservationEnd, Source, Verdict};

const SECOND: u64 = 1_000_000;

fn gate(limits: &str) -> Gate<Faulty> {
    let gate = Gate::new(setup(limits), Faulty::default()).unwrap();
    gate.with_deny_cache(DenyCache::new(1_000, Duration::from_secs(1)))
}

fn ask<T>(
    gate: &Gate<Faulty>,
    after_us: u64,
    user: &str,
    cost: u64,
    look: impl FnOnce(&Verdict<'_>) -> T,
) -> T {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", user).unwrap();
    look(&now(gate.check(&rules, NOW_US + after_us, &facts, cost, &mut GateBuffers::default())))
}

fn sources(gate: &Gate<Faulty>, asked: &[(u64, u64)]) -> Vec<(bool, Source)> {
    asked.iter().map(|&(us, cost)| ask(gate, us, "a", cost, |v| (v.allowed, v.source))).collect()
}

const HOURLY: &str = "  - {name: l, key: [user], rate: 2/h, algorithm: gcra}\n";

#[test]
fn a_flood_on_a_refused_key_costs_one_store_call_a_second() {
    let gate = gate(HOURLY);
    sources(&gate, &[(0, 2)]);
    let before = gate.store().calls();
    for n in 0..100_000 {
        ask(&gate, n * 9, "a", 1, |verdict| assert!(!verdict.allowed));
    }
    assert_eq!(gate.store().calls() - before, 1, "100,000 requests within 0.9 s");
    assert_eq!(gate.counts()[0].1.deny_cache_hits, 99_999);
    assert_eq!(gate.counts()[0].1.refused, 100_000);
    assert!(
        ask(&gate, 0, "b", 1, |verdict| verdict.allowed),
        "another key is none of its business"
    );
}

/// A lagging replica may have answered the peek.
#[test]
fn nothing_is_learnt_from_a_peek() {
    let gate = gate(HOURLY);
    sources(&gate, &[(0, 2)]);
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    let peeked = now(gate.peek(&rules, NOW_US, &facts, 1, &mut GateBuffers::default()));
    assert!(!peeked.allowed);
    assert_eq!(
        sources(&gate, &[(0, 1), (0, 1)]),
        [(false, Source::Store), (false, Source::DenyCache)]
    );
}

#[test]
fn it_answers_what_the_store_would_have_answered() {
    let gate = gate(HOURLY);
    sources(&gate, &[(0, 2), (0, 1)]);
    ask(&gate, SECOND / 2, "a", 1, |verdict| {
        assert_eq!(verdict.source, Source::DenyCache);
        assert_eq!(verdict.retry_after_us, Some(1_800 * SECOND - SECOND / 2));
        assert_eq!(rows(verdict), [("l", false, 0)]);
    });
    ask(&gate, SECOND / 2, "a", 3, |verdict| {
        assert_eq!(verdict.source, Source::DenyCache);
        assert_eq!(verdict.retry_after_us, None, "three never fit");
    });
}

#[test]
fn it_never_refuses_what_the_store_would_admit() {
    let gate = gate("  - {name: l, key: [user], rate: 4/s, algorithm: gcra}\n");
    let refused = (false, Source::Store);
    assert_eq!(
        sources(&gate, &[(0, 3), (0, 2), (0, 1)]),
        [(true, Source::Store), refused, (true, Source::Store),]
    );
    assert_eq!(
        sources(&gate, &[(0, 1), (249_999, 1), (250_000, 1)]),
        [refused, (false, Source::DenyCache), (true, Source::Store),]
    );
}

#[test]
fn an_entry_holds_for_its_age_its_rules_and_its_numbers() {
    let limits = "  - {name: l, key: [user], rate: 1/h, algorithm: gcra, tiers: {more: 5/h}}\n";
    let gate = gate(limits);
    sources(&gate, &[(0, 1), (0, 1)]);
    assert_eq!(
        sources(&gate, &[(SECOND - 1, 1), (SECOND, 1)]),
        [(false, Source::DenyCache), (false, Source::Store),]
    );
    gate.replace(setup(limits)).unwrap();
    assert_eq!(
        sources(&gate, &[(SECOND, 1), (SECOND, 1)]),
        [(false, Source::Store), (false, Source::DenyCache),]
    );
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    facts.set("plan", "more").unwrap();
    let tier = now(gate.check(&rules, NOW_US + SECOND, &facts, 1, &mut GateBuffers::default()));
    assert_eq!(tier.source, Source::Store, "another tier has other numbers");
}

#[test]
fn giving_back_and_resetting_forget() {
    let gate = gate("  - {name: l, key: [user], rate: 2/h, algorithm: fixed-window}\n");
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    now(gate.reserve(&rules, NOW_US, "r", &facts, 2, None, &mut GateBuffers::default())).unwrap();
    assert_eq!(sources(&gate, &[(0, 1), (0, 1)])[1], (false, Source::DenyCache));
    now(gate.end(NOW_US, "r", ReservationEnd::Settle(1))).unwrap();
    assert_eq!(
        sources(&gate, &[(0, 1), (0, 1), (0, 1)]),
        [(true, Source::Store), (false, Source::Store), (false, Source::DenyCache),]
    );
    assert_eq!(now(gate.reset(&rules, NOW_US, &facts, None)).unwrap(), ["l"]);
    assert_eq!(sources(&gate, &[(0, 1)]), [(true, Source::Store)]);
}

#[test]
fn slots_and_penalties_are_not_remembered_until_they_block() {
    let slots = gate("  - {name: l, key: [user], algorithm: concurrency, rate: 1}\n");
    assert_eq!(sources(&slots, &[(0, 1), (0, 1), (0, 1)])[2], (false, Source::Store));
    let strict =
        gate("  - {name: l, key: [user], rate: 1/h, penalty: {after: 2, block: 2h, max: 2h}}\n");
    assert_eq!(
        sources(&strict, &[(0, 1), (0, 1), (0, 1), (0, 1)]),
        [
            (true, Source::Store),
            (false, Source::Store),
            (false, Source::Blocked),
            (false, Source::DenyCache),
        ]
    );
}

#[test]
fn a_full_cache_forgets_what_no_longer_holds_and_asks_the_store_for_the_rest() {
    let gate = Gate::new(setup(HOURLY), Faulty::default()).unwrap();
    let gate = gate.with_deny_cache(DenyCache::new(16, Duration::from_secs(1)));
    let users: Vec<_> = (0..500).map(|n| format!("user-{n}")).collect();
    for user in &users {
        ask(&gate, 0, user, 9, |verdict| assert!(!verdict.allowed));
    }
    let remembered = |us| {
        let hit = |user: &&String| ask(&gate, us, user, 9, |v| v.source == Source::DenyCache);
        users.iter().filter(hit).count()
    };
    assert!((1..=16).contains(&remembered(0)), "as many as fit");
    remembered(2 * SECOND);
    assert!((1..=16).contains(&remembered(2 * SECOND)), "and others once those are too old");
}

#[test]
fn a_refusal_from_before_a_reset_is_not_learnt_after_it() {
    let gate = gate(HOURLY);
    sources(&gate, &[(0, 2)]);
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    gate.store().set_slow(true);
    {
        let mut work = GateBuffers::default();
        let mut check =
            std::pin::pin!(gate.check(&rules, NOW_US, &facts, 1, &mut work).into_future());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(
            check.as_mut().poll(&mut context).is_pending(),
            "it was refused, and is on its way"
        );
        gate.store().set_slow(false);
        now(gate.reset(&rules, NOW_US, &facts, None)).unwrap();
        assert!(check.as_mut().poll(&mut context).is_ready());
    }
    assert_eq!(sources(&gate, &[(0, 1)]), [(true, Source::Store)]);
}

/// Runs `meanwhile` while a request at `after_us` waits for a slow store. Returns the store's
/// answer if the request is awaited.
fn while_one_asks(
    gate: &Gate<Faulty>,
    after_us: u64,
    waited_for: bool,
    meanwhile: impl FnOnce(),
) -> Option<(bool, Source)> {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    let mut work = GateBuffers::default();
    gate.store().set_slow(true);
    let check = gate.check(&rules, NOW_US + after_us, &facts, 1, &mut work);
    let mut check = std::pin::pin!(check.into_future());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(check.as_mut().poll(&mut context).is_pending());
    gate.store().set_slow(false);
    meanwhile();
    match waited_for.then(|| check.as_mut().poll(&mut context)) {
        Some(std::task::Poll::Ready(verdict)) => Some((verdict.allowed, verdict.source)),
        _ => None,
    }
}

const REFUSED: (bool, Source) = (false, Source::Store);
const REMEMBERED: (bool, Source) = (false, Source::DenyCache);

/// A gate with an entry that was learnt at the start.
fn remembering(limits: &str) -> Gate<Faulty> {
    let gate = gate(limits);
    assert_eq!(sources(&gate, &[(0, 2), (0, 1), (0, 1)])[1..], [REFUSED, REMEMBERED]);
    gate
}

#[test]
fn one_request_asks_about_an_entry_that_is_too_old_and_others_are_refused_meanwhile() {
    let gate = remembering(HOURLY);
    let before = gate.store().calls();
    let asked = while_one_asks(&gate, SECOND, true, || {
        for _ in 0..200 {
            assert_eq!(sources(&gate, &[(SECOND + 99_999, 1)]), [REMEMBERED]);
        }
    });
    assert_eq!(asked, Some(REFUSED));
    assert_eq!(sources(&gate, &[(2 * SECOND - 1, 1)]), [REMEMBERED], "it was learnt anew");
    assert_eq!(gate.store().calls() - before, 1, "202 requests");
}

#[test]
fn a_request_that_goes_away_leaves_its_place_to_another() {
    let gate = remembering(HOURLY);
    let asked = while_one_asks(&gate, SECOND, false, || {
        assert_eq!(sources(&gate, &[(SECOND, 1)]), [REMEMBERED]);
    });
    assert_eq!(asked, None);
    assert_eq!(sources(&gate, &[(SECOND, 1), (SECOND, 1)]), [REFUSED, REMEMBERED]);
}

#[test]
fn nobody_is_refused_for_long_by_what_is_too_old() {
    let gate = remembering(HOURLY);
    let asked = while_one_asks(&gate, SECOND, false, || {
        let late = SECOND + 100_000;
        assert_eq!(sources(&gate, &[(late - 1, 1), (late, 1)]), [REMEMBERED, REFUSED]);
    });
    assert_eq!(asked, None, "it is never answered");
    // The same if several requests are dropped: the time counts from the first.
    let gate = remembering(HOURLY);
    while_one_asks(&gate, SECOND, false, || {});
    while_one_asks(&gate, SECOND + 60_000, false, || {
        let late = SECOND + 100_000;
        assert_eq!(sources(&gate, &[(late - 1, 1), (late, 1)]), [REMEMBERED, REFUSED]);
    });
    // An answer that admits ends the entry, and so does a failure.
    let gate = remembering("  - {name: l, key: [user], rate: 2/h, on_store_failure: open}\n");
    now(gate.store().reset_elsewhere());
    assert_eq!(while_one_asks(&gate, SECOND, true, || {}), Some((true, Source::Store)));
    let asked = while_one_asks(&gate, SECOND, true, || {
        assert_eq!(sources(&gate, &[(SECOND, 1)]), [REFUSED], "it asks by itself");
    });
    assert_eq!(asked, Some((true, Source::Store)));
    let gate = remembering("  - {name: l, key: [user], rate: 2/h, on_store_failure: open}\n");
    gate.store().set_down(true);
    let open = (true, Source::FailOpen);
    assert_eq!(sources(&gate, &[(SECOND, 1), (SECOND, 1)]), [open, open]);
}

#[test]
fn whoever_would_be_admitted_asks_whoever_else_does() {
    let gate = gate("  - {name: l, key: [user], rate: 4/s, algorithm: gcra}\n");
    assert_eq!(sources(&gate, &[(0, 4), (0, 2), (0, 2)])[1..], [REFUSED, REMEMBERED]);
    // Two units are back after half a second, long before the entry is too old. So each request
    // calls the store itself.
    let asked = while_one_asks(&gate, 500_000, true, || {
        assert_eq!(sources(&gate, &[(500_000, 1)]), [(true, Source::Store)]);
    });
    assert_eq!(asked, Some((true, Source::Store)));
}
