//! A reservation is kept in the store: any node can end it, once.

use super::{Member, Redis, until};
use crate::http::Answer;
use serde_json::Value;
use tollgate_observe::metrics::Front;

const LIMITS: &str = "limits:
  - {name: tokens, key: [user], rate: 10/366d, algorithm: fixed-window}
  - {name: slots, key: [user], algorithm: concurrency, rate: 2, ttl: 1h}
";

fn post(member: &Member, call: &str, body: &str) -> Answer {
    member.client(Front::Http).post(&format!("/v1/{call}"), body)
}

fn reserve(member: &Member, cost: u64, ttl: &str) -> String {
    let body = format!(
        "{{\"attributes\": {{\"user\": \"marker-user\"}}, \"cost\": {cost}, \"ttl\": \"{ttl}\"}}"
    );
    let answer = post(member, "reserve", &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["reservation"].as_str().unwrap().to_owned()
}

fn settle(member: &Member, id: &str, cost: u64) -> Answer {
    post(member, "settle", &format!("{{\"reservation\": \"{id}\", \"cost\": {cost}}}"))
}

fn cancel(member: &Member, id: &str) -> Answer {
    post(member, "cancel", &format!("{{\"reservation\": \"{id}\"}}"))
}

fn remaining(answer: &Answer) -> Vec<u64> {
    let json = answer.json();
    json["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["remaining"].as_u64().unwrap())
        .collect()
}

fn peek(member: &Member) -> Answer {
    post(member, "peek", "{\"attributes\": {\"user\": \"marker-user\"}}")
}

/// If another node ends a reservation, the node that made it frees its slot in the adaptive shedder
/// before the reservation expires.
#[test]
fn an_end_at_another_node_frees_the_slot_of_the_first() {
    let redis = Redis::start();
    let limits = format!("shed: {{adaptive: {{min: 2, max: 2}}}}\n{LIMITS}");
    let members = [(); 2].map(|()| Member::start(&redis, "deadline: 30s", &limits));
    let [first, second] = [(); 2].map(|()| reserve(&members[0], 1, "1h"));
    assert_eq!(settle(&members[1], &first, 1).status, 200);
    assert_eq!(cancel(&members[1], &second).status, 200);
    let status = |user: &str| {
        let body = format!("{{\"attributes\": {{\"user\": \"{user}\"}}, \"ttl\": \"1h\"}}");
        post(&members[0], "reserve", &body).status
    };
    until(|| status("ann") == 200);
    until(|| status("bob") == 200);
    assert_eq!(status("cat"), 503, "open reservations keep their slots");
}

#[test]
fn any_node_ends_a_reservation_and_it_ends_once() {
    let redis = Redis::start();
    let members = [(); 3].map(|()| Member::start(&redis, "deadline: 30s", LIMITS));
    let id = reserve(&members[0], 2, "1h");
    assert_eq!(remaining(&peek(&members[1])), [8, 0], "ordinary checks see it");
    let first = settle(&members[1], &id, 1);
    assert_eq!((first.status, remaining(&first)), (200, vec![9, 2]), "{first:?}");
    assert_eq!(first.json()["limits"][0]["source"], "store");
    post(&members[2], "check", "{\"attributes\": {\"user\": \"marker-user\"}}");
    for member in &members {
        let again = settle(member, &id, 1);
        assert_eq!(
            (again.status, &again.body),
            (200, &first.body),
            "the same call, the same answer"
        );
        assert_eq!(settle(member, &id, 2).status, 409);
        assert_eq!(cancel(member, &id).status, 409);
        assert_eq!(cancel(member, "no-such-reservation").status, 404);
    }
    assert_eq!(remaining(&peek(&members[0])), [8, 1], "nothing was returned twice");
}

#[test]
fn debts_and_expiry_are_seen_everywhere() {
    let redis = Redis::start();
    let members = [(); 2].map(|()| Member::start(&redis, "deadline: 30s", LIMITS));
    let id = reserve(&members[0], 1, "50ms");
    // The reservation existed when it was answered, so by now it has certainly expired.
    std::thread::sleep(std::time::Duration::from_millis(60));
    assert_eq!(cancel(&members[1], &id).status, 404);
    assert_eq!(remaining(&peek(&members[0])), [9, 2], "the charge stays, the slot is free");
    let id = reserve(&members[0], 1, "1h");
    let settled = settle(&members[1], &id, 50);
    assert_eq!((settled.status, settled.json()["charged"].as_u64()), (200, Some(50)));
    assert_eq!(remaining(&settled), [0, 2]);
    let refused = post(&members[0], "check", "{\"attributes\": {\"user\": \"marker-user\"}}");
    assert_eq!(refused.status, 429, "the debt counts: {refused:?}");
    let mut connection = redis.connection().unwrap();
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    for key in keys {
        let left_ms: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(left_ms > 0, "{} has no end", String::from_utf8_lossy(&key));
        let value: Vec<u8> = redis::cmd("GET").arg(&key).query(&mut connection).unwrap();
        assert!(!String::from_utf8_lossy(&value).contains("marker-user"));
    }
}

#[test]
fn a_node_without_its_store_keeps_what_it_let_pass() {
    let mut redis = Redis::start();
    let member = Member::start(&redis, "deadline: 2s", LIMITS);
    redis.kill();
    until(|| peek(&member).json()["source"] == "fail-open");
    let id = reserve(&member, 5, "1h");
    let answer = settle(&member, &id, 3);
    assert_eq!((answer.status, &answer.json()["limits"]), (200, &Value::Array(vec![])));
    assert_eq!(settle(&member, &id, 3).status, 200);
    assert_eq!(cancel(&member, &id).status, 409);
    assert_eq!(cancel(&member, "unknown").status, 503, "the store would know");
}

const LOCAL: &str = "limits:
  - {name: tokens, key: [user], rate: 10/366d, algorithm: fixed-window, on_store_failure: local}
  - {name: slots, key: [user], algorithm: concurrency, rate: 2, ttl: 1h, on_store_failure: local}
";

#[test]
fn a_reservation_of_an_outage_ends_on_its_node() {
    let mut redis = Redis::start();
    let members = [(); 2].map(|()| Member::start(&redis, "deadline: 2s", LOCAL));
    redis.kill();
    let [member, other] = &members;
    until(|| peek(member).json()["source"] == "local-fallback");
    let settled = settle(member, &reserve(member, 1, "1h"), 4);
    assert_eq!((settled.status, remaining(&settled)), (200, vec![6, 2]), "{settled:?}");
    assert_eq!(settled.json()["limits"][0]["source"], "local-fallback");
    let cancelled = cancel(member, &reserve(member, 2, "1h"));
    assert_eq!((cancelled.status, remaining(&cancelled)), (200, vec![6, 2]), "{cancelled:?}");
    let open = reserve(member, 2, "1h");
    redis.restart();
    until(|| [member, other].iter().all(|node| peek(node).json()["source"] == "store"));
    assert_eq!(cancel(other, &open).status, 404, "no other node knows it");
    assert_eq!(remaining(&cancel(member, &open)), [6, 2]);
    assert_eq!(remaining(&peek(member)), [10, 2], "the store has nothing of it");
}
