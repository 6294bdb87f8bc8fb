//! Slots that lapsed in the store while their requests run: what else is decided meanwhile, and
//! what their renewal costs a store that is dead, slow or loses replies.

use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, SeenVerdict, seen, seen_verdict, setup};
use crate::now;
use std::time::Duration;
use tollgate::engine::{
    AdmissionOptions, Gate, GateBuffers, InFlightCharges, SingleCheck, SingleVerdict, Source,
};
use tollgate::store::redis::{Endpoint, RedisOptions};
use tollgate::store::{LeaseStore, RedisStore};
use tollgate_core::Intent;
use tollgate_faults::redis::Redis;
use tollgate_policy::policy::Selection;

const SECOND_US: u64 = 1_000_000;

/// Slots of a user, and limits that the store decides whatever lapsed.
const LIMITS: &str = "  - {name: slots, key: [user], algorithm: concurrency, ttl: 30s, rate: 1000, on_missing: skip, on_store_failure: closed, penalty: {after: 1, block: 2h, max: 2h}}
  - {name: ip, key: [ip], rate: 3/h, algorithm: fixed-window, on_missing: skip}
  - {name: login, key: [account], rate: 1/h, algorithm: fixed-window, on_missing: skip, penalty: {after: 2, block: 2h, max: 2h}}
  - {name: bill, key: [org], rate: 10/h, algorithm: fixed-window, on_missing: skip, debt: true}
";

fn gate() -> Gate<Faulty> {
    Gate::new(setup(LIMITS), Faulty::default()).unwrap()
}

fn admit(gate: &Gate<Faulty>, now_us: u64, user: &str) -> Option<InFlightCharges> {
    now(admit_later(gate, now_us, user))
}

async fn admit_later<S: LeaseStore>(
    gate: &Gate<S>,
    now_us: u64,
    user: &str,
) -> Option<InFlightCharges> {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", user).unwrap();
    let (options, mut buffers) = (AdmissionOptions::default(), GateBuffers::default());
    gate.admit(&rules, now_us, &facts, &options, &mut buffers).await.1
}

fn decide(
    gate: &Gate<Faulty>,
    now_us: u64,
    values: &[(&str, &str)],
    intent: Intent,
) -> SeenVerdict {
    now(decide_later(gate, now_us, values, intent))
}

async fn decide_later<S: LeaseStore>(
    gate: &Gate<S>,
    now_us: u64,
    values: &[(&str, &str)],
    intent: Intent,
) -> SeenVerdict {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    values.iter().for_each(|(name, value)| facts.set(name, value).unwrap());
    let mut buffers = GateBuffers::default();
    let verdict = match intent {
        Intent::Take => gate.check(&rules, now_us, &facts, 1, &mut buffers).await,
        Intent::Peek => gate.peek(&rules, now_us, &facts, 1, &mut buffers).await,
    };
    seen_verdict(&verdict)
}

/// The units left of the one limit that has this value.
fn left(gate: &Gate<Faulty>, now_us: u64, name: &str, value: &str) -> u64 {
    decide(gate, now_us, &[(name, value)], Intent::Peek).2[0].2
}

/// Renews the slots for a while.
fn renew(gate: &Gate<Faulty>, from_us: u64, for_us: u64) -> u64 {
    let mut now_us = from_us;
    while now_us < from_us + for_us {
        now_us += now(gate.renew_slots(now_us)).expect("requests run").as_micros() as u64;
    }
    now_us
}

/// Takes a slot of each user, and lets them lapse. The store works again at the end.
fn lapse(gate: &Gate<Faulty>, users: &[&str]) -> (Vec<InFlightCharges>, u64) {
    let held = users.iter().map(|user| admit(gate, NOW_US, user).expect("a slot is free"));
    let held = held.collect();
    gate.store().set_down(true);
    let now_us = renew(gate, NOW_US, 40 * SECOND_US);
    gate.store().set_down(false);
    (held, now_us)
}

/// Each check is one limit's: its index, attribute and value.
fn check_batch(
    gate: &Gate<Faulty>,
    now_us: u64,
    asked: &[(usize, &str, &str)],
) -> Vec<SingleVerdict> {
    let rules = gate.rules();
    let selection = |(limit, name, value): &(usize, &str, &str)| {
        let (mut selection, mut facts) = (Selection::default(), rules.facts(Default::default()));
        facts.set(name, value).unwrap();
        rules.policy().select_one(*limit, &facts, 1, &mut selection);
        selection
    };
    let selections: Vec<Selection> = asked.iter().map(selection).collect();
    let intent = Intent::Take;
    let checks = selections.iter().map(|selection| SingleCheck::Limit { selection, intent });
    let mut buffers = GateBuffers::default();
    now(gate.check_batch(&rules, now_us, checks, &mut buffers));
    buffers.verdicts().to_vec()
}

#[test]
fn a_lapsed_key_fails_no_other_check_of_its_batch() {
    let gate = gate();
    let (held, now_us) = lapse(&gate, &["a"]);
    let asked = [(1, "ip", "10.0.0.1"), (0, "user", "a"), (0, "user", "b"), (1, "ip", "10.0.0.1")];
    let verdicts = check_batch(&gate, now_us, &asked);
    let verdicts = verdicts.iter().map(|one| (one.allowed, one.outcome.remaining, one.source));
    let expected = [
        (true, 2, Source::Store),
        (false, 0, Source::FailClosed),
        (true, 999, Source::Store),
        (true, 1, Source::Store),
    ];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
    assert_eq!(left(&gate, now_us, "ip", "10.0.0.1"), 1, "the store counted both");
    assert_eq!(left(&gate, now_us, "user", "a"), 1000, "and no slot of the lapsed key");
    held.into_iter().for_each(|held| now(gate.finish(now_us, held)));
}

/// The store knows that the request is refused: it charges nothing but debts, and counts the
/// violations of other limits.
#[test]
fn a_lapsed_key_leaves_the_other_limits_of_its_request_to_the_store() {
    let gate = gate();
    let (held, now_us) = lapse(&gate, &["a"]);
    assert!(decide(&gate, now_us, &[("account", "ann")], Intent::Take).0, "the only one an hour");
    let calls = gate.store().calls();
    let request = [("user", "a"), ("ip", "10.0.0.1"), ("account", "ann"), ("org", "o")];
    let refused = |left| {
        let login = ("login", false, 0);
        let rows = [("slots", false, 0), ("ip", true, 3), login, ("bill", true, left)];
        seen(false, Source::FailClosed, &rows)
    };
    assert_eq!(decide(&gate, now_us, &request, Intent::Take), refused(9));
    assert_eq!(decide(&gate, now_us, &request, Intent::Take), refused(8));
    assert_eq!(gate.store().calls() - calls, 2, "nothing has to be given back");
    assert_eq!(left(&gate, now_us, "ip", "10.0.0.1"), 3, "the request is refused");
    assert_eq!(left(&gate, now_us, "org", "o"), 8, "debts are charged");
    assert_eq!(left(&gate, now_us, "user", "a"), 1000, "the refusals are no violations");
    let counts = gate.counts();
    let of = |name: &str| counts.iter().find(|(one, _)| &**one == name).unwrap().1;
    assert_eq!((of("slots").fail_closed, of("ip").fail_open, of("login").refused), (2, 0, 2));
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("account", "ann").unwrap();
    let mut buffers = GateBuffers::default();
    let verdict = now(gate.peek(&rules, now_us, &facts, 1, &mut buffers));
    assert_eq!(verdict.retry_after_us, Some(7_200 * SECOND_US), "two violations block the key");
    held.into_iter().for_each(|held| now(gate.finish(now_us, held)));
}

/// A primary of the request's other limits works, and the one of the lapsed key does not.
#[test]
fn a_lapsed_key_of_a_dead_primary_charges_no_other_limit() {
    let gate = gate();
    let (held, now_us) = lapse(&gate, &["dead"]);
    gate.store().fail_value(Some("dead"));
    let request = [("user", "dead"), ("ip", "10.0.0.1")];
    let rows = [("slots", false, 0), ("ip", true, 3)];
    let refused = seen(false, Source::FailClosed, &rows);
    assert_eq!(decide(&gate, now_us, &request, Intent::Take), refused);
    assert_eq!(left(&gate, now_us, "ip", "10.0.0.1"), 3);
    held.into_iter().for_each(|held| now(gate.finish(now_us, held)));
}

/// One call asks for all slots of a key whether the store answers again.
#[test]
fn a_key_is_tried_once_whatever_its_slots() {
    let gate = gate();
    let users: Vec<_> = (0..60).map(|n| ["a", "b"][n % 2]).collect();
    let (held, now_us) = lapse(&gate, &users);
    gate.store().set_down(true);
    let calls = gate.store().calls();
    let now_us = renew(&gate, now_us, SECOND_US);
    let tried = gate.store().calls() - calls;
    assert!((10..=24).contains(&tried), "{tried} calls for two keys in a second");
    gate.store().set_down(false);
    let now_us = renew(&gate, now_us, SECOND_US / 10);
    assert_eq!((left(&gate, now_us, "user", "a"), left(&gate, now_us, "user", "b")), (970, 970));
    assert!(admit(&gate, now_us, "a").is_some());
    held.into_iter().for_each(|held| now(gate.finish(now_us, held)));
}

/// Every renewal takes effect, and no reply arrives.
#[test]
fn retries_whose_replies_are_lost_take_no_slots() {
    let gate = gate();
    let held = admit(&gate, NOW_US, "a").unwrap();
    gate.store().set_loses_replies(true);
    let now_us = renew(&gate, NOW_US, 60 * SECOND_US);
    gate.store().set_loses_replies(false);
    let now_us = renew(&gate, now_us, SECOND_US / 10);
    assert_eq!(left(&gate, now_us, "user", "a"), 999, "of the request that runs");
    now(gate.finish(now_us, held));
    assert_eq!(left(&gate, now_us, "user", "a"), 1000);
}

/// A real server stops for longer than slots last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_decides_the_other_limits_of_a_lapsed_key() {
    let server = Redis::start();
    let mut options = RedisOptions::default();
    (options.deadline, options.caller_time) = (Duration::from_secs(2), true);
    let store = RedisStore::open(&Endpoint::unix(server.socket()), options).unwrap();
    let gate = Gate::new(setup(LIMITS), store).unwrap();
    let held = admit_later(&gate, NOW_US, "a").await.expect("a slot is free");
    server.process().signal("STOP");
    for second in [10, 35] {
        assert!(gate.renew_slots(NOW_US + second * SECOND_US).await.is_some());
    }
    server.process().signal("CONT");
    let now_us = NOW_US + 45 * SECOND_US;
    for attempt in 0.. {
        let (.., source, _) = decide_later(&gate, now_us, &[("user", "b")], Intent::Peek).await;
        if source == Source::Store {
            break;
        }
        assert!(attempt < 1_000, "the server answers");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let request = [("user", "a"), ("ip", "10.0.0.1"), ("org", "o")];
    let refused = |left| {
        let rows = [("slots", false, 0), ("ip", true, 3), ("bill", true, left)];
        seen(false, Source::FailClosed, &rows)
    };
    for left in [9, 8] {
        assert_eq!(decide_later(&gate, now_us, &request, Intent::Take).await, refused(left));
    }
    gate.renew_slots(now_us).await;
    let admitted = [("slots", true, 998), ("ip", true, 2), ("bill", true, 7)];
    let admitted = seen(true, Source::Store, &admitted);
    assert_eq!(decide_later(&gate, now_us, &request, Intent::Take).await, admitted);
    gate.finish(now_us, held).await;
}
