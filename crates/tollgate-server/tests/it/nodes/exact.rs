//! Three nodes, one limit: what all of them admit together is the limit, to the request.

use super::redis::Redis;
use super::{Member, body, until};
use crate::http::Client;
use std::collections::BTreeMap;
use std::thread;
use tollgate_server::metrics::Front;

/// Nothing comes back within a test.
const LIMITS: &str = "on_store_failure: closed
limits:
  - {name: all, match: {path: /all}, rate: 300/366d, algorithm: fixed-window}
  - {name: user, match: {path: /user}, key: [user], rate: 70/366d, algorithm: gcra}
  - {name: both-a, match: {path: /both}, key: [user], rate: 90/366d, algorithm: sliding-log}
  - {name: both-b, match: {path: /both}, rate: 100/366d, algorithm: token-bucket}
";
const PATHS: [&str; 3] = ["/all", "/user", "/both"];

/// How often each (user, path) was admitted by one client of one node.
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
    // Each user could have 90, but there are only 100.
    assert_eq!(of("/both").iter().sum::<u64>(), 100, "{total:?}");
    for member in members {
        let refused = member.metric("tollgate_decisions_total{limit=\"all\",outcome=\"refused\"}");
        assert!(refused > 0, "every node had its share of the load");
        assert_eq!(member.metric("tollgate_store_errors_total{kind=\"timeout\"}"), 0);
        assert!(member.running.node().health.is_ready());
    }
}

/// The secret names the keys: nodes that agree on it count together, one that was given another counts elsewhere.
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
