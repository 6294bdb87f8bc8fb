//! The fleet shedder: slots by class, in one call with a request's limits.

use crate::faulty_store::Faulty;
use crate::fixture::NOW_US;
use crate::now;
use crate::observer::Notes;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tollgate::MemoryStore;
use tollgate::engine::limit::Mode;
use tollgate::engine::{
    AdmissionOptions, DescriptorMode, Gate, GateBuffers, GateSetup, InFlightCharges, ModeOverride,
    MultiCheck, ReservationEnd, ShedCounts, ShedReason, Source, policy,
};
use tollgate::store::redis::{Endpoint, RedisOptions};
use tollgate::store::{LeaseStore, RedisStore};
use tollgate_faults::redis::Redis;

const SECOND_US: u64 = 1_000_000;

fn setup(fleet: &str, rest: &str) -> GateSetup {
    let text = format!(
        "classes:
  - {{name: critical, match: {{path: /charge}}}}
  - {{name: normal, default: true}}
  - {{name: batch, match: {{path: /report}}}}
shed: {{fleet: {fleet}}}
{rest}"
    );
    GateSetup::of(&policy::compile(text.as_bytes()).unwrap())
}

const PATHS: [&str; 3] = ["/charge", "/", "/report"];

/// Admits a request of this class. Returns the reason if it is shed.
async fn enter<S: LeaseStore>(
    gate: &Gate<S>,
    now_us: u64,
    class: usize,
) -> Result<InFlightCharges, Option<ShedReason>> {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("path", PATHS[class]).unwrap();
    facts.set("user", "ann").unwrap();
    let (options, mut work) = (AdmissionOptions::default(), GateBuffers::default());
    let (verdict, held) = gate.admit(&rules, now_us, &facts, &options, &mut work).await;
    assert!(verdict.rows.iter().all(|row| !row.limit.name.starts_with("shed/")));
    let shed = verdict.shed.expect("a shedder is on");
    assert_eq!(shed.class, class);
    match verdict.allowed {
        true => Ok(held.expect("a request in flight is counted")),
        false => Err(shed.reason),
    }
}

fn counts<S: LeaseStore>(gate: &Gate<S>, class: &str) -> ShedCounts {
    let all = gate.shed_counts();
    all.into_iter().find(|(name, _)| &**name == class).expect(class).1
}

const EIGHTY: &str = "{capacity: 10, reserve: {critical: 20%}}";

#[test]
fn others_are_shed_at_80_percent_and_critical_requests_are_not() {
    let gate = Gate::new(setup(EIGHTY, ""), MemoryStore::default()).unwrap();
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(now(enter(&gate, NOW_US, 1)).unwrap());
    }
    assert_eq!(now(enter(&gate, NOW_US, 1)).unwrap_err(), Some(ShedReason::Fleet));
    assert_eq!(now(enter(&gate, NOW_US, 2)).unwrap_err(), Some(ShedReason::Fleet));
    let critical = [(); 2].map(|()| now(enter(&gate, NOW_US, 0)).unwrap());
    assert_eq!(now(enter(&gate, NOW_US, 0)).unwrap_err(), Some(ShedReason::Fleet));
    let normal = counts(&gate, "normal");
    assert_eq!((normal.admitted, normal.shed, normal.in_flight), (8, [1, 0, 0], 8));
    assert_eq!(normal.offered(), 9);
    // A critical request that ends makes no room for others: eight critical ones are in flight.
    let [one, other] = critical;
    now(gate.finish(NOW_US, one));
    assert!(now(enter(&gate, NOW_US, 1)).is_err());
    now(gate.finish(NOW_US, held.pop().unwrap()));
    assert_eq!(counts(&gate, "normal").in_flight, 7);
    held.push(now(enter(&gate, NOW_US, 1)).unwrap());
    now(gate.finish(NOW_US, other));
    held.into_iter().for_each(|held| now(gate.finish(NOW_US, held)));
    assert_eq!(counts(&gate, "normal").in_flight, 0);
}

/// A check of cost 0 is always admitted and takes no slot. A reservation of cost 0 is in flight,
/// and takes one.
#[test]
fn a_check_without_units_takes_no_slot() {
    let gate = Gate::new(setup("{capacity: 1}", ""), MemoryStore::default()).unwrap();
    let (rules, mut work) = (gate.rules(), GateBuffers::default());
    let facts = rules.facts(Default::default());
    let mut check = |cost| now(gate.check(&rules, NOW_US, &facts, cost, &mut work)).allowed;
    assert!(check(0) && check(1));
    assert!(!check(1) && check(0), "the slot is taken");
}

/// The verdict on a shed request: 503 with a random wait, and no limit is charged.
#[test]
fn a_shed_request_takes_nothing_from_its_limits() {
    let limits = "limits: [{name: per-user, key: [user], rate: 5/min}]";
    let gate = Gate::new(setup("{capacity: 1}", limits), Faulty::default()).unwrap();
    let held = now(enter(&gate, NOW_US, 1)).unwrap();
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "ann").unwrap();
    let (options, mut waits) = (AdmissionOptions::default(), std::collections::BTreeSet::new());
    let calls = gate.store().calls();
    for _ in 0..50 {
        let mut work = GateBuffers::default();
        let (verdict, held) = now(gate.admit(&rules, NOW_US, &facts, &options, &mut work));
        assert_eq!((verdict.allowed, verdict.source), (false, Source::Shed));
        assert!(held.is_none());
        assert_eq!(verdict.rows.len(), 1);
        assert!(verdict.rows[0].outcome.admitted, "the limit would admit");
        assert_eq!(verdict.rows[0].outcome.remaining, 4);
        waits.insert(verdict.retry_after_us.unwrap());
    }
    assert_eq!(gate.store().calls() - calls, 50, "one call for limits and fleet");
    assert!(waits.len() > 40, "clients return at different times: {waits:?}");
    assert!(waits.iter().all(|wait_us| (1..=3 * SECOND_US).contains(wait_us)));
    let counted = gate.counts();
    assert!(counted.iter().all(|(name, _)| !name.starts_with("shed/")), "{counted:?}");
    now(gate.finish(NOW_US, held));
}

#[test]
fn a_request_over_its_own_limit_is_not_shed() {
    let limits = "limits: [{name: per-user, key: [user], rate: 1/min}]";
    let gate = Gate::new(setup("{capacity: 1}", limits), MemoryStore::default()).unwrap();
    let _held = now(enter(&gate, NOW_US, 1)).unwrap();
    assert_eq!(now(enter(&gate, NOW_US, 1)).unwrap_err(), None);
    assert_eq!(counts(&gate, "normal").offered(), 1);
}

#[test]
fn a_store_that_fails_admits() {
    let gate = Gate::new(setup("{capacity: 1}", "on_store_failure: closed"), Faulty::default());
    let gate = gate.unwrap();
    gate.store().set_down(true);
    let held = [(); 3].map(|()| now(enter(&gate, NOW_US, 1)).unwrap());
    let rules = gate.rules();
    let (facts, mut work) = (rules.facts(Default::default()), GateBuffers::default());
    let verdict = now(gate.check(&rules, NOW_US, &facts, 1, &mut work));
    assert_eq!((verdict.allowed, verdict.source), (true, Source::FailOpen));
    gate.store().set_down(false);
    held.into_iter().for_each(|held| now(gate.finish(NOW_US, held)));
    let _only = now(enter(&gate, NOW_US, 1)).unwrap();
    assert!(now(enter(&gate, NOW_US, 1)).is_err(), "nothing was given back that was not taken");
}

/// A gRPC call whose deadline has passed is decided without the store.
#[test]
fn a_late_check_of_descriptors_is_counted_by_its_class_alone() {
    let notes = Arc::<Notes>::default();
    let gate = Gate::new(setup(EIGHTY, ""), MemoryStore::default()).unwrap();
    let gate = gate.with_observer(notes.clone());
    let (rules, mut work, mut asked) =
        (gate.rules(), GateBuffers::default(), MultiCheck::default());
    let mut facts = rules.facts(Default::default());
    facts.set("path", "/report").unwrap();
    asked.begin();
    asked.add(&rules, &facts, 1, DescriptorMode::Enforce);
    asked.add_fleet(&rules);
    let late = gate.check_multi_without_store(&rules, NOW_US, &asked, &mut work);
    assert!(late.verdict.allowed, "the fleet's slots fail open");
    assert_eq!(counts(&gate, "batch").offered(), 1);
    let fleet = gate.counts().into_iter().find(|(name, _)| name.starts_with("shed/"));
    assert!(fleet.is_none(), "{fleet:?}");
    assert!(notes.take().is_empty(), "observers see limits only");
}

/// Slots live like those of concurrency limits: renewed while in flight, free after a crash.
#[test]
fn slots_are_renewed_and_survive_crashes() {
    let gate = Gate::new(setup("{capacity: 2, ttl: 30s}", ""), Faulty::default()).unwrap();
    let running = now(enter(&gate, NOW_US, 1)).unwrap();
    drop(now(enter(&gate, NOW_US, 1)).unwrap());
    let mut now_us = NOW_US;
    while now_us < NOW_US + 29 * SECOND_US {
        let wait = now(gate.renew_slots(now_us)).expect("a request is under way");
        assert!(now(enter(&gate, now_us, 0)).is_err(), "as after a crash");
        now_us += wait.as_micros() as u64;
    }
    now_us = NOW_US + 31 * SECOND_US;
    now(gate.renew_slots(now_us));
    let other = now(enter(&gate, now_us, 1)).expect("the slot of the crash is free");
    assert!(now(enter(&gate, now_us, 1)).is_err(), "the one in flight is not");
    now(gate.finish(now_us, running));
    now(gate.finish(now_us, other));
}

/// The end of a checked request is unknown, so it counts for the time of `assume`.
#[test]
fn a_check_holds_its_slot_for_the_assumed_time() {
    let gate = Gate::new(setup("{capacity: 1, assume: 200ms}", ""), MemoryStore::default());
    let gate = gate.unwrap();
    let rules = gate.rules();
    let check = |now_us| {
        let facts = rules.facts(Default::default());
        let verdict = gate.check(&rules, now_us, &facts, 7, &mut GateBuffers::default()).now();
        (verdict.allowed, verdict.source)
    };
    assert_eq!(check(NOW_US), (true, Source::None));
    assert_eq!(check(NOW_US + 199_999), (false, Source::Shed));
    assert_eq!(check(NOW_US + 200_000), (true, Source::None));
    let mut options = AdmissionOptions::default();
    options.is_end_seen = false;
    let facts = rules.facts(Default::default());
    let later_us = NOW_US + SECOND_US;
    let admitted =
        gate.admit(&rules, later_us, &facts, &options, &mut GateBuffers::default()).now();
    assert!(admitted.0.allowed && admitted.1.is_none());
    let peek = gate.peek(&rules, later_us, &facts, 1, &mut GateBuffers::default()).now();
    assert_eq!((peek.allowed, peek.source), (false, Source::Shed));
    assert_eq!(check(later_us + 200_000), (true, Source::None));
}

#[test]
fn shadow_counts_and_off_asks_nothing() {
    let gate = Gate::new(setup("{capacity: 1}", ""), Faulty::default()).unwrap();
    gate.set_overrides(vec![ModeOverride::new("shed/fleet", Mode::Shadow)]);
    let held = [(); 3].map(|()| now(enter(&gate, NOW_US, 2)).unwrap());
    let batch = counts(&gate, "batch");
    assert_eq!((batch.admitted, batch.shed, batch.shadow_shed), (3, [0; 3], [2, 0, 0]));
    held.into_iter().for_each(|held| now(gate.finish(NOW_US, held)));
    gate.set_overrides(vec![ModeOverride::new(ModeOverride::ALL, Mode::Off)]);
    let (rules, calls) = (gate.rules(), gate.store().calls());
    let facts = rules.facts(Default::default());
    let options = AdmissionOptions::default();
    let mut work = GateBuffers::default();
    let (verdict, held) = now(gate.admit(&rules, NOW_US, &facts, &options, &mut work));
    assert!(verdict.allowed && verdict.shed.is_none() && held.is_none());
    assert_eq!(gate.store().calls(), calls);
}

#[test]
fn a_reservation_carries_its_slot() {
    let limits = "limits: [{name: per-user, key: [user], rate: 9/min}]";
    let gate = Gate::new(setup("{capacity: 1}", limits), MemoryStore::default()).unwrap();
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "ann").unwrap();
    let reserve = |id: &'static str, now_us: u64| {
        let mut work = GateBuffers::default();
        let ttl_us = Some(5 * SECOND_US);
        let reserved = gate.reserve(&rules, now_us, id, &facts, 3, ttl_us, &mut work).now();
        let (verdict, ttl_us) = reserved.unwrap();
        (verdict.source, ttl_us.is_some())
    };
    assert_eq!(reserve("a", NOW_US), (Source::Memory, true));
    assert_eq!(reserve("b", NOW_US), (Source::Shed, false));
    let settled = gate.end(NOW_US, "a", ReservationEnd::Settle(2)).now().unwrap();
    let rows: Vec<_> = settled.rows().map(|row| row.limit.name.to_string()).collect();
    assert_eq!(rows, ["per-user"]);
    assert_eq!(reserve("c", NOW_US), (Source::Memory, true));
    // The reservation is never settled: the slot is free when it expires.
    assert_eq!(reserve("d", NOW_US + 4_999_999), (Source::Shed, false));
    assert_eq!(reserve("e", NOW_US + 5 * SECOND_US), (Source::Memory, true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against counts of requests in flight: each class, with those below it, stays within the
    /// capacity that the classes above leave.
    #[test]
    fn no_class_gets_into_what_is_reserved_above_it(
        capacity in 1_u32..12,
        reserves in (0_u32..60, 0_u32..40),
        steps in prop::collection::vec((0_usize..3, any::<bool>(), 0_usize..20), 1..120),
    ) {
        let fleet = format!(
            "{{capacity: {capacity}, reserve: {{critical: {}%, normal: {}%}}}}",
            reserves.0, reserves.1
        );
        let gate = Gate::new(setup(&fleet, ""), MemoryStore::default()).unwrap();
        let reserved = [reserves.0, reserves.1].map(|share| (capacity * share).div_ceil(100));
        let room = [
            capacity,
            capacity.saturating_sub(reserved[0]),
            capacity.saturating_sub(reserved[0] + reserved[1]),
        ];
        let mut in_flight: Vec<(usize, InFlightCharges)> = Vec::new();
        for (class, enters, which) in steps {
            if !enters && !in_flight.is_empty() {
                let (_, held) = in_flight.swap_remove(which % in_flight.len());
                now(gate.finish(NOW_US, held));
                continue;
            }
            let used = |first: usize| in_flight.iter().filter(|one| one.0 >= first).count() as u32;
            let fits = (0..=class).all(|first| used(first) < room[first]);
            match now(enter(&gate, NOW_US, class)) {
                Ok(held) => {
                    prop_assert!(fits, "class {class} got in");
                    in_flight.push((class, held));
                }
                Err(reason) => {
                    prop_assert_eq!(reason, Some(ShedReason::Fleet));
                    prop_assert!(!fits, "class {} was shed although there is room", class);
                }
            }
        }
        in_flight.into_iter().for_each(|(_, held)| now(gate.finish(NOW_US, held)));
    }
}

/// Three nodes on one server, with many tasks: at no instant do all nodes together have more
/// requests in flight than the capacity.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_never_exceed_the_capacity_under_fire() {
    const CAPACITY: i64 = 20;
    let server = Redis::start();
    let node = || {
        let mut options = RedisOptions::default();
        options.deadline = Duration::from_secs(20);
        let store = RedisStore::open(&Endpoint::unix(server.socket()), options).unwrap();
        let fleet = "{capacity: 20, reserve: {critical: 20%}}";
        Arc::new(Gate::new(setup(fleet, ""), store).unwrap())
    };
    let nodes = [node(), node(), node()];
    let clock = Arc::new(AtomicU64::new(NOW_US));
    // All requests, and those below critical.
    let in_flight = Arc::new([AtomicI64::new(0), AtomicI64::new(0)]);
    let most = Arc::new([AtomicI64::new(0), AtomicI64::new(0)]);
    let tally = Arc::new([(); 6].map(|()| AtomicU64::new(0)));
    let tasks = (0..60).map(|task| {
        let gate = Arc::clone(&nodes[task % 3]);
        let (in_flight, most, tally) = (in_flight.clone(), most.clone(), tally.clone());
        let clock = clock.clone();
        tokio::spawn(async move {
            for round in 0..60 {
                let class = if task % 5 == 0 { 0 } else { 1 + (task + round) % 2 };
                let now_us = clock.fetch_add(1, SeqCst);
                let Ok(held) = enter(&gate, now_us, class).await else {
                    tally[3 + class].fetch_add(1, SeqCst);
                    tokio::task::yield_now().await;
                    continue;
                };
                tally[class].fetch_add(1, SeqCst);
                for (of, count) in in_flight.iter().enumerate().filter(|(of, _)| class >= *of) {
                    most[of].fetch_max(count.fetch_add(1, SeqCst) + 1, SeqCst);
                }
                tokio::time::sleep(Duration::from_micros(200 * (round as u64 % 7))).await;
                for (_, count) in in_flight.iter().enumerate().filter(|(of, _)| class >= *of) {
                    count.fetch_sub(1, SeqCst);
                }
                gate.finish(now_us, held).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let figures = tally.each_ref().map(|count| count.load(SeqCst));
    let [most_of_all, most_of_others] = most.each_ref().map(|count| count.load(SeqCst));
    assert!(most_of_all <= CAPACITY, "{most_of_all} in flight");
    assert!(most_of_others <= CAPACITY * 8 / 10, "{most_of_others} below critical in flight");
    assert!(figures[3..].iter().sum::<u64>() > 0, "the fleet was never full: {figures:?}");
    // All slots were given back: the whole capacity is free for critical requests.
    let now_us = clock.fetch_add(1, SeqCst);
    let mut held = Vec::new();
    for place in 0..CAPACITY as usize {
        held.push(enter(&nodes[place % 3], now_us, 0).await.expect("a slot was lost"));
    }
    assert!(enter(&nodes[0], now_us, 0).await.is_err());
    for (place, held) in held.into_iter().enumerate() {
        nodes[place % 3].finish(now_us, held).await;
    }
}
