//! A request whose limits are on several primaries of a real cluster, while one of them fails.

use crate::fixture::{NOW_US, SeenVerdict, seen, seen_verdict, setup};
use std::time::Duration;
use tollgate::engine::{Gate, GateBuffers, ReservationEnd, SingleCheck, Source};
use tollgate::store::redis::{Endpoint, RedisOptions};
use tollgate::store::{RedisStore, StoreErrorKind};
use tollgate_core::Intent;
use tollgate_faults::cluster::Cluster;
use tollgate_policy::policy::Selection;

/// The primary that fails in each test.
const FAILING: usize = 2;

fn open(cluster: &Cluster, deadline: Duration, limits: &str) -> Gate<RedisStore> {
    let mut options = RedisOptions::default();
    options.deadline = deadline;
    options.caller_time = true;
    let seeds = [0, 1].map(|n| ("127.0.0.1".into(), cluster.servers[n].port()));
    let store = RedisStore::open(&Endpoint::cluster(seeds), options).unwrap();
    Gate::new(setup(limits), store).unwrap()
}

/// Limits of users, addresses and organisations, with these failure policies.
fn limits(of_user: &str, of_ip: &str, of_org: &str) -> String {
    let limit = |key: &str, count: u32, policy: &str| {
        format!(
            "  - {{name: {key}, key: [{key}], rate: {count}/hour, algorithm: fixed-window, \
             on_missing: skip, on_store_failure: {policy}}}\n"
        )
    };
    limit("user", 100, of_user) + &limit("ip", 2, of_ip) + &limit("org", 100, of_org)
}

async fn check(gate: &Gate<RedisStore>, values: &[(&str, &str)]) -> SeenVerdict {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    values.iter().for_each(|(name, value)| facts.set(name, value).unwrap());
    let verdict = gate.check(&rules, NOW_US, &facts, 1, &mut GateBuffers::default()).await;
    seen_verdict(&verdict)
}

/// The units left of a limit, by its name and key.
async fn left(gate: &Gate<RedisStore>, name: &str, value: &str) -> u64 {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set(name, value).unwrap();
    let verdict = gate.peek(&rules, NOW_US, &facts, 1, &mut GateBuffers::default()).await;
    verdict.rows[0].outcome.remaining
}

async fn until_left(gate: &Gate<RedisStore>, name: &str, value: &str, expected: u64) {
    for _ in 0..2_000 {
        if left(gate, name, value).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{expected} of {name} should be left: nothing stays charged");
}

/// Values of an attribute whose state is on the failing primary, or on another one.
async fn values(cluster: &Cluster, name: &str, on_failing: bool, count: usize) -> Vec<String> {
    let gate = open(cluster, Duration::from_secs(20), &limits("open", "open", "open"));
    let keys = || format!("{:?}", cluster.servers[FAILING].run("DBSIZE"));
    let (mut found, mut before) = (Vec::new(), keys());
    for n in 0.. {
        let value = if name == "ip" { format!("10.0.0.{n}") } else { format!("{name}{n}") };
        check(&gate, &[(name, &value)]).await;
        let now = keys();
        if (now != before) == on_failing {
            found.push(value);
        }
        if found.len() == count {
            break;
        }
        before = now;
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_limit_is_decided_by_its_own_primary() {
    let cluster = Cluster::start(Duration::from_secs(120));
    let users = values(&cluster, "user", true, 1).await;
    let [user, ip, org] = [
        users[0].clone(),
        values(&cluster, "ip", false, 1).await.remove(0),
        values(&cluster, "org", false, 1).await.remove(0),
    ];
    let request = [("user", &*user), ("ip", &*ip), ("org", &*org)];
    // The values were found with one charge each.
    let gates = ["open", "closed", "{local: {rate: 3/hour}}"]
        .map(|policy| open(&cluster, Duration::from_millis(500), &limits(policy, "open", "open")));
    let [open, closed, local] = &gates;
    for gate in &gates {
        assert!(left(gate, "user", &user).await > 0, "the gate has read the slots");
        assert_eq!(left(gate, "ip", &ip).await, 1);
    }
    cluster.servers[FAILING].process().signal("STOP");
    // The first calls wait for their deadline, and then the circuit breaker is open.
    for attempt in 0..8 {
        let refused = seen(
            false,
            Source::FailClosed,
            &[("user", false, 0), ("ip", true, 1), ("org", true, 99)],
        );
        assert_eq!(check(closed, &request).await, refused, "attempt {attempt}");
        assert_eq!((left(closed, "ip", &ip).await, left(closed, "org", &org).await), (1, 99));
    }
    assert!(closed.store().is_breaker_open());

    let passed = |left| {
        seen(true, Source::FailOpen, &[("user", true, 100), ("ip", true, 0), ("org", true, left)])
    };
    assert_eq!(check(open, &request).await, passed(98));
    for attempt in 0..8 {
        for (gate, share) in [(open, 100), (local, 3)] {
            let (allowed, source, rows) = check(gate, &request).await;
            assert_eq!((allowed, source), (false, Source::Store), "attempt {attempt}: {rows:?}");
            // The refusal does not charge the local share either.
            assert_eq!(rows[0], ("user".to_owned(), true, share), "attempt {attempt}");
            assert_eq!(rows[1], ("ip".to_owned(), false, 0), "attempt {attempt}");
            // Another primary may have charged the request, and is refunded in the background.
            until_left(gate, "org", &org, 98).await;
        }
    }
    let without_ip = [("user", &*user), ("org", &*org)];
    for used in 1..=3 {
        let passed = seen(
            true,
            Source::LocalFallback,
            &[("user", true, 3 - used), ("org", true, 98 - used)],
        );
        assert_eq!(check(local, &without_ip).await, passed);
    }
    let refused = seen(false, Source::LocalFallback, &[("user", false, 0), ("org", true, 95)]);
    assert_eq!(check(local, &without_ip).await, refused);
    assert_eq!(left(local, "org", &org).await, 95, "the share refused, so nothing stays charged");
    let errors = open.store_errors();
    let counted = |kind| errors.iter().find(|(one, _)| *one == kind).map_or(0, |one| one.1);
    assert!(
        counted(StoreErrorKind::Timeout) > 0 && counted(StoreErrorKind::BreakerOpen) > 0,
        "{errors:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_requests_leases_and_reservations_do_not_fail_with_a_dead_primary() {
    let mut cluster = Cluster::start(Duration::from_secs(120));
    let user = values(&cluster, "user", true, 1).await.remove(0);
    let ip = values(&cluster, "ip", false, 1).await.remove(0);
    let org = values(&cluster, "org", false, 1).await.remove(0);
    let gate = open(&cluster, Duration::from_secs(20), &limits("open", "open", "open"));
    let request = [("user", &*user), ("ip", &*ip), ("org", &*org)];
    assert!(check(&gate, &request).await.0, "the last one of the address");
    cluster.servers[FAILING].kill();

    // A batch has a request for each limit.
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    request.iter().for_each(|(name, value)| facts.set(name, value).unwrap());
    let mut selections = [(); 3].map(|()| Selection::default());
    for (limit, selection) in selections.iter_mut().enumerate() {
        rules.policy().select_one(limit, &facts, 1, selection);
    }
    let checks = || {
        let intent = Intent::Take;
        selections.iter().map(move |selection| SingleCheck::Limit { selection, intent })
    };
    let mut buffers = GateBuffers::default();
    gate.check_batch(&rules, NOW_US, checks(), &mut buffers).await;
    let verdicts = buffers.verdicts().iter().map(|one| (one.allowed, one.source));
    let expected = [(true, Source::FailOpen), (false, Source::Store), (true, Source::Store)];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);

    // The record of a reservation may be on the failed primary; then no charge stays.
    let mut facts = rules.facts(Default::default());
    facts.set("user", &user).unwrap();
    facts.set("org", &org).unwrap();
    let before = left(&gate, "org", &org).await;
    let (mut kept, mut failed) = (None, 0);
    for n in 0..100 {
        let id = format!("reservation-{n}");
        let mut buffers = GateBuffers::default();
        match gate.reserve(&rules, NOW_US, &id, &facts, 5, None, &mut buffers).await {
            Ok((verdict, ttl_us)) => {
                assert_eq!((verdict.allowed, ttl_us.is_some()), (true, true));
                kept = kept.or(Some(id));
                break;
            }
            Err(_) => failed += 1,
        }
        assert_eq!(left(&gate, "org", &org).await, before, "{id}");
    }
    assert_eq!(left(&gate, "org", &org).await, before - 5, "{failed} failed");
    gate.end(NOW_US, &kept.unwrap(), ReservationEnd::Settle(2)).await.unwrap();
    assert_eq!(left(&gate, "org", &org).await, before - 2);
}

/// The lease of the first limit waits for its primary. That must not use up the deadline of the
/// second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leased_limit_on_a_frozen_primary_fails_alone() {
    let cluster = Cluster::start(Duration::from_secs(120));
    let user = values(&cluster, "user", true, 1).await.remove(0);
    let ip = values(&cluster, "ip", false, 1).await.remove(0);
    let mut options = RedisOptions::default();
    options.deadline = Duration::from_millis(500);
    let seeds = [0, 1].map(|n| ("127.0.0.1".into(), cluster.servers[n].port()));
    let store = RedisStore::open(&Endpoint::cluster(seeds), options).unwrap();
    let limits = "  - {name: user, key: [user], rate: 100000/day, consistency: leased}\n  \
                  - {name: ip, key: [ip], rate: 1/day, algorithm: leaky-bucket}\n";
    let gate = Gate::new(setup(limits), store).unwrap();
    let request = [("user", &*user), ("ip", &*ip)];
    let mut passed = 0;
    for _ in 0..50 {
        passed += u32::from(check(&gate, &request).await.0);
    }
    assert_eq!(passed, 1);
    cluster.servers[FAILING].process().signal("STOP");
    for attempt in 0..8 {
        let (allowed, source, rows) = check(&gate, &request).await;
        assert_eq!((allowed, source), (false, Source::Store), "attempt {attempt}: {rows:?}");
    }
}
