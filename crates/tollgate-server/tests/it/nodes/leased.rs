//! Leased limits, over HTTP.

use super::{Member, Redis, body, until};
use crate::http::Answer;
use std::thread;
use tollgate_server::metrics::Front;

const LIMITS: &str = "on_store_failure: closed
limits:
  - {name: hot, match: {path: /hot}, key: [user], rate: 3000/366d, algorithm: fixed-window, consistency: {leased: {lifetime: 200ms, quiet: 1s}}}
  - {name: few, match: {path: /few}, key: [user], rate: 5/366d, algorithm: fixed-window, consistency: {leased: {lifetime: 200ms, quiet: 1s}}}
";
/// Leases are quiet for no less than this takes.
const STORE: &str = "deadline: 400ms, breaker: {probe: 200ms}";

fn ask(member: &Member, path: &str) -> Answer {
    member.client(Front::Http).post("/v1/check", &body("a", path))
}

/// Asks until there is a lease, and answers how many were admitted.
fn until_leased(member: &Member) -> u64 {
    let mut admitted = 0;
    until(|| {
        let answer = ask(member, "/hot");
        admitted += u64::from(answer.status == 200);
        answer.json()["source"] == "lease"
    });
    admitted
}

/// What a node admits until it refuses.
fn exhaust(member: &Member) -> u64 {
    let mut client = member.client(Front::Http);
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
    thread::scope(|scope| {
        let crowd: Vec<_> =
            (0..4).map(|number| scope.spawn(|| exhaust(&members[number % 2]))).collect();
        admitted += crowd.into_iter().map(|one| one.join().unwrap()).sum::<u64>();
    });
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

/// Charges that the store itself refused, which count as decided by it.
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
    let inspected = client.post("/v1/inspect", "{\"attributes\": {\"user\": \"a\"}}").json();
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
    let mut members = [(); 2].map(|()| Some(Member::start(&redis, STORE, LIMITS)));
    let mut admitted = until_leased(members[0].as_ref().unwrap());
    let leaving = members[0].take().unwrap().drain();
    assert!(leaving > 0);
    let stays = members[1].as_ref().unwrap();
    until_leased_or(stays, &mut admitted);
    admitted += exhaust(stays);
    // What the other held is there again at once.
    assert_eq!(admitted, 3_000);
}

fn until_leased_or(member: &Member, admitted: &mut u64) {
    *admitted += until_leased(member);
}
