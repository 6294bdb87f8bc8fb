//! Leased limits, over HTTP.

use super::{Member, Redis, body, until};
use crate::http::{Answer, Client};
use std::thread;
use tollgate_observe::metrics::Front;

const LIMITS: &str = "on_store_failure: closed
admin: {token: a-token-of-the-tests}
limits:
  - {name: hot, match: {path: /hot}, key: [user], rate: 3000/366d, algorithm: fixed-window, consistency: {leased: {lifetime: 200ms, quiet: 1s}}}
  - {name: few, match: {path: /few}, key: [user], rate: 5/366d, algorithm: fixed-window, consistency: {leased: {lifetime: 200ms, quiet: 1s}}}
";
/// The grace period is no shorter than this test.
const STORE: &str = "deadline: 400ms, breaker: {probe: 200ms}";

fn ask(member: &Member, path: &str) -> Answer {
    member.client(Front::Http).post("/v1/check", &body("a", path))
}

/// Sends requests until the node has a lease. Returns the number of admitted requests.
fn until_leased(member: &Member) -> u64 {
    let mut admitted = 0;
    until(|| {
        let answer = ask(member, "/hot");
        admitted += u64::from(answer.status == 200);
        answer.json()["source"] == "lease"
    });
    admitted
}

/// The number of requests that a node admits until it refuses.
fn exhaust(mut client: Client) -> u64 {
    let (mut admitted, mut refused) = (0, 0);
    while refused < 20 {
        match client.post("/v1/check", &body("a", "/hot")).status {
            200 => admitted += 1,
            429 => refused += 1,
            status => assert_eq!(status, 503),
        }
    }
    admitted
}

#[test]
fn nodes_decide_by_themselves_and_never_over_the_limit() {
    let redis = Redis::start();
    let members = [(); 2].map(|()| Member::start(&redis, STORE, LIMITS));
    let mut admitted: u64 = members.iter().map(until_leased).sum();
    let clients = (0..4).map(|number| members[number % 2].client(Front::Http));
    let crowd: Vec<_> = clients.map(|client| thread::spawn(|| exhaust(client))).collect();
    admitted += crowd.into_iter().map(|one| one.join().unwrap()).sum::<u64>();
    assert!((2_900..=3_000).contains(&admitted), "{admitted}");
    let sum = |name: &str| members.iter().map(|member| member.metric(name)).sum::<u64>();
    let by = |by: &str| sum(&format!("tollgate_lease_decisions_total{{by=\"{by}\"}}"));
    assert_eq!(by("lease") + by("store"), admitted + refused_by_store(&members));
    assert_eq!(sum("tollgate_lease_spent_units_total"), by("lease"));
    assert!(by("lease") > 2_500, "{}", by("lease"));
    assert!(sum("tollgate_lease_store_calls_total") < 300);
    let row = &ask(&members[0], "/hot").json()["limits"][0];
    assert_eq!((&row["limit"], &row["remaining"]), (&3_000.into(), &0.into()));
}

/// Charges that the store itself refused have the store as their source.
fn refused_by_store(members: &[Member]) -> u64 {
    let sum = |name: &str| members.iter().map(|member| member.metric(name)).sum::<u64>();
    let refused = sum("tollgate_decisions_total{limit=\"hot\",outcome=\"refused\"}");
    refused - sum("tollgate_lease_decisions_total{by=\"refusal\"}")
}

#[test]
fn small_limits_are_exact_and_a_leased_key_shows_its_ledger() {
    let redis = Redis::start();
    let member = Member::start(&redis, STORE, LIMITS);
    until(|| ask(&member, "/few").status != 503);
    let admitted = (0..20).filter(|_| ask(&member, "/few").status == 200).count();
    assert!((4..=5).contains(&admitted), "{admitted}");
    until_leased(&member);
    let mut client = member.client(Front::Admin);
    let body = "{\"attributes\": {\"user\": \"a\"}}";
    let head = "POST /v1/inspect HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a-token-of-the-tests";
    let length = body.len();
    let kind = "content-type: application/json";
    client.send(format!("{head}\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{body}").as_bytes());
    let inspected = client.answer().json();
    let limits = inspected["limits"].as_array().unwrap();
    let hot = limits.iter().find(|limit| limit["name"] == "hot").unwrap();
    let holding = &hot["ledger"]["holdings"][0];
    assert!(holding["granted"].as_u64().unwrap() > 0, "{inspected}");
    assert_eq!(holding["this_node"], true);
    let few = limits.iter().find(|limit| limit["name"] == "few").unwrap();
    assert!(few.get("ledger").is_none(), "{few}");
}

#[test]
fn a_node_that_drains_returns_what_it_holds() {
    let redis = Redis::start();
    let [leaves, stays] = [(); 2].map(|()| Member::start(&redis, STORE, LIMITS));
    let mut admitted = until_leased(&leaves);
    until(|| {
        admitted += u64::from(ask(&leaves, "/hot").status == 200);
        leaves.metric("tollgate_lease_held_units") > 0
    });
    let Member { running, .. } = leaves;
    running.drain();
    admitted += until_leased(&stays) + exhaust(stays.client(Front::Http));
    // No unit of the other node's lease is lost.
    assert_eq!(admitted, 3_000);
}
