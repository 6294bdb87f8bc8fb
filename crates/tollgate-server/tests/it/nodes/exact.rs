//! Three nodes with one limit together admit exactly the limit, for every algorithm and cost.

use super::{Member, Redis, body, until};
use crate::http::Client;
use std::collections::BTreeMap;
use std::thread;
use tollgate_observe::metrics::Front;

/// No limit refills during a test.
const LIMITS: &str = "on_store_failure: closed
limits:
  - {name: all, match: {path: /all}, rate: 300/366d, algorithm: fixed-window}
  - {name: user, match: {path: /user}, key: [user], rate: 70/366d, algorithm: gcra}
  - {name: both-a, match: {path: /both}, key: [user], rate: 90/366d, algorithm: sliding-log}
  - {name: both-b, match: {path: /both}, rate: 100/366d, algorithm: token-bucket}
";
const PATHS: [&str; 3] = ["/all", "/user", "/both"];

/// The number of admissions of each (user, path) for one client of one node.
fn load(mut client: Client, seed: usize) -> BTreeMap<(usize, &'static str), u64> {
    let mut admitted = BTreeMap::new();
    for n in 0..600 {
        let (user, path) = ((n + seed) / 3 % 2, PATHS[(n + seed) % 3]);
        let answer = client.post("/v1/check", &body(&user.to_string(), path));
        match answer.status {
            200 => *admitted.entry((user, path)).or_default() += 1,
            429 => {}
            _ => panic!("{answer:?}"),
        }
        let source = answer.json()["source"].clone();
        assert!(source == "store" || source == "deny-cache", "{answer:?}");
    }
    admitted
}

#[test]
fn together_they_admit_the_limit() {
    let redis = Redis::start();
    let members = [(); 3].map(|()| Member::start(&redis, "deadline: 30s", LIMITS));
    members.iter().for_each(|member| until(|| member.ready().0 == 200));
    let mut total = BTreeMap::new();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..9)
            .map(|n| (members[n % 3].client(Front::Http), n))
            .map(|(client, n)| scope.spawn(move || load(client, n * 7)))
            .collect();
        for client in clients {
            for (what, count) in client.join().unwrap() {
                *total.entry(what).or_insert(0) += count;
            }
        }
    });
    let of = |path: &str| [0, 1].map(|user| total.get(&(user, path)).copied().unwrap_or(0));
    assert_eq!(of("/all").iter().sum::<u64>(), 300, "{total:?}");
    assert_eq!(of("/user"), [70, 70]);
    // Each user could use 90 units, but there are only 100.
    assert_eq!(of("/both").iter().sum::<u64>(), 100, "{total:?}");
    for member in members {
        let refused = member.metric("tollgate_decisions_total{limit=\"all\",outcome=\"refused\"}");
        assert!(refused > 0, "every node had its share of the load");
        assert_eq!(member.metric("tollgate_store_errors_total{kind=\"timeout\"}"), 0);
        assert!(member.running.node().health.is_ready());
    }
}

/// Costs above one, and refunds. Buckets are left out of the refunds: they return slightly less
/// than they took.
const MIXED: &str = "on_store_failure: closed
limits:
  - {name: fixed, match: {path: /fixed}, key: [user], rate: 120/366d, algorithm: fixed-window}
  - {name: log, match: {path: /log}, key: [user], rate: 110/366d, algorithm: sliding-log}
  - {name: sliding, match: {path: /sliding}, key: [user], rate: 130/366d, algorithm: sliding-window}
  - {name: gcra, match: {path: /gcra}, key: [user], rate: 90/366d, algorithm: gcra}
  - {name: token, match: {path: /token}, key: [user], rate: 80/366d, algorithm: token-bucket}
  - {name: leaky, match: {path: /leaky}, key: [user], rate: 1/366d, burst: 70, algorithm: leaky-bucket}
  - {name: slots, match: {path: /slots}, key: [user], rate: 25, algorithm: concurrency, ttl: 1h}
";
const MIXED_PATHS: [(&str, u64); 7] = [
    ("/fixed", 120),
    ("/log", 110),
    ("/sliding", 130),
    ("/gcra", 90),
    ("/token", 80),
    ("/leaky", 70),
    ("/slots", 25),
];

/// The units of one client of one node, net of refunds, by user and path.
fn mixed_load(mut client: Client, seed: u64) -> BTreeMap<(u64, &'static str), u64> {
    let mut held = BTreeMap::new();
    let mut chance = seed;
    let mut next = |most: u64| {
        chance =
            chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % most
    };
    for _ in 0..350 {
        let (user, (path, _)) = (next(2), MIXED_PATHS[next(7) as usize]);
        let (cost, reserves) =
            (1 + next(3), next(3) == 0 && !["/gcra", "/token", "/leaky"].contains(&path));
        let body = format!(
            "{{\"attributes\": {{\"user\": \"{user}\", \"path\": \"{path}\"}}, \"cost\": {cost}}}"
        );
        let answer = client.post(if reserves { "/v1/reserve" } else { "/v1/check" }, &body);
        match answer.status {
            200 => {}
            429 => continue,
            _ => panic!("{answer:?}"),
        }
        let mut keeps = cost;
        if reserves {
            let id = answer.json()["reservation"].as_str().unwrap().to_owned();
            let (call, end, left) = match next(3) {
                0 => ("/v1/cancel", format!("{{\"reservation\": \"{id}\"}}"), 0),
                _ => ("/v1/settle", format!("{{\"reservation\": \"{id}\", \"cost\": 1}}"), 1),
            };
            let answer = client.post(call, &end);
            assert_eq!(answer.status, 200, "{answer:?}");
            // A slot is free when its request ends, whatever its cost.
            keeps = if path == "/slots" { 0 } else { left };
        }
        *held.entry((user, path)).or_default() += keeps;
    }
    held
}

#[test]
fn costs_and_reservations_from_three_nodes_add_up() {
    let redis = Redis::start();
    // Without a deny cache: a cached refusal may be older than the last refund.
    let fields = "deadline: 30s, deny_cache: {entries: 0}";
    let members = [(); 3].map(|()| Member::start(&redis, fields, MIXED));
    members.iter().for_each(|member| until(|| member.ready().0 == 200));
    let mut total = BTreeMap::new();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..9)
            .map(|n| (members[n % 3].client(Front::Http), n as u64))
            .map(|(client, n)| scope.spawn(move || mixed_load(client, n + 1)))
            .collect();
        for client in clients {
            for (what, count) in client.join().unwrap() {
                *total.entry(what).or_insert(0) += count;
            }
        }
    });
    for (user, (path, limit)) in [0, 1].into_iter().flat_map(|n| MIXED_PATHS.map(|path| (n, path)))
    {
        let had = total.get(&(user, path)).copied().unwrap_or(0);
        assert!(had <= limit, "{path} of {user}: {had}");
        // Takes the remaining units one by one, from each node in turn.
        let ask = |n: usize| {
            let mut client = members[n % 3].client(Front::Http);
            client.post("/v1/check", &body(&user.to_string(), path)).status
        };
        let left = (0..).take_while(|n| ask(*n) == 200).count() as u64;
        assert_eq!(had + left, limit, "{path} of {user}");
    }
}

/// The secret is part of the keys: nodes with the same secret share counts, and a node with another
/// secret does not.
#[test]
fn nodes_agree_on_a_secret() {
    let redis = Redis::start();
    let remaining = |secret: &str| {
        let fields = format!("deadline: 30s, secret: {secret}");
        let member = Member::start(&redis, &fields, LIMITS);
        until(|| member.ready().0 == 200);
        let answer = member.client(Front::Http).post("/v1/check", &body("0", "/user"));
        answer.json()["limits"][0]["remaining"].as_u64()
    };
    assert_eq!(
        ["one", "one", "another", "one"].map(remaining).map(Option::unwrap),
        [69, 68, 69, 67]
    );
}
