//! The least rights of a node in Redis, as documented in docs/operations.md, and tiers from a hash.

use super::{Member, Redis, body, until};
use std::path::Path;
use tollgate_observe::metrics::Front;

/// The documented line, with another password.
fn documented(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("user {name} ")));
    let line = line.unwrap_or_else(|| panic!("no user {name} in docs/operations.md"));
    let words =
        line.split_whitespace().skip(1).map(|word| word.replace("PASSWORD", "marker-password"));
    std::iter::once("--user".to_owned()).chain(words).collect()
}

const CREDENTIALS: &str = "deadline: 30s, username: tollgate, password: marker-password";

#[test]
fn the_documented_rights_are_enough() {
    let rights = documented("tollgate");
    let redis = Redis::start_with(&rights.iter().map(String::as_str).collect::<Vec<_>>());
    let limits = "on_store_failure: closed
limits:
  - {name: gcra, key: [user], rate: 100/366d, algorithm: gcra}
  - {name: log, key: [user], rate: 100/366d, algorithm: sliding-log, penalty: {after: 1, block: 1m, max: 1h}}
  - {name: slots, key: [user], rate: 5, algorithm: concurrency}
";
    let admin = "admin: {token: a-token-of-some-length}\n";
    let member = Member::start(&redis, CREDENTIALS, &format!("{admin}{limits}"));
    until(|| member.ready().0 == 200);
    let mut client = member.client(Front::Http);
    assert_eq!(client.post("/v1/check", &body("a", "/")).status, 200);
    let id = client.post("/v1/reserve", &body("a", "/")).json()["reservation"].clone();
    assert_eq!(
        client.post("/v1/settle", &format!("{{\"reservation\": {id}, \"cost\": 3}}")).status,
        200
    );
    for call in ["reset", "block"] {
        let json = match call {
            "block" => "{\"attributes\": {\"user\": \"a\"}, \"for\": \"1m\"}",
            _ => "{\"attributes\": {\"user\": \"a\"}}",
        };
        let mut client = member.client(Front::Admin);
        client.send(
            format!(
                "POST /v1/{call} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a-token-of-some-length\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{json}",
                json.len()
            )
            .as_bytes(),
        );
        let answer = client.answer();
        assert_eq!(answer.status, 200, "{call}: {answer:?}");
    }
    for kind in ["timeout", "unreachable", "busy", "protocol", "rejected"] {
        assert_eq!(
            member.metric(&format!("tollgate_store_errors_total{{kind=\"{kind}\"}}")),
            0,
            "{kind}"
        );
    }
}

#[test]
fn tiers_come_from_a_hash_and_the_default_without_it() {
    let mut rights = documented("tollgate");
    rights.extend(["+hget".into(), "%R~plans".into()]);
    let mut redis = Redis::start_with(&rights.iter().map(String::as_str).collect::<Vec<_>>());
    let mut connection = redis.connection().unwrap();
    redis::cmd("HSET")
        .arg(&["plans", "paula", "pro", "otto", "odd"])
        .exec(&mut connection)
        .unwrap();
    let rest = "tiers: {default: free, redis: {hash: plans, by: user}}
limits: [{name: l, key: [user], rate: 2/366d, tiers: {pro: 5/366d}, algorithm: fixed-window}]
";
    let member = Member::start(&redis, CREDENTIALS, rest);
    let mut client = member.client(Front::Http);
    let mut limit =
        |user: &str| client.post("/v1/peek", &body(user, "/")).json()["limits"][0]["limit"].clone();
    assert_eq!([limit("paula"), limit("otto"), limit("nobody")], [5, 2, 2]);
    // A tier that was found is cached for a while, and so is a missing one.
    redis::cmd("HSET").arg(&["plans", "nobody", "pro"]).exec(&mut connection).unwrap();
    redis::cmd("HDEL").arg(&["plans", "paula"]).exec(&mut connection).unwrap();
    assert_eq!([limit("paula"), limit("nobody")], [5, 2]);
    until(|| limit("nobody") == 5);
    until(|| limit("paula") == 2);
    redis.kill();
    let before = errors(&member);
    let answer = client_after(&member, "somebody");
    assert_eq!((answer.status, &answer.json()["limits"][0]["limit"]), (200, &2.into()));
    assert!(errors(&member) > before);
}

fn client_after(member: &Member, user: &str) -> crate::http::Answer {
    member.client(Front::Http).post("/v1/peek", &body(user, "/"))
}

fn errors(member: &Member) -> u64 {
    let kinds = ["timeout", "unreachable", "busy", "protocol", "rejected"];
    kinds
        .map(|kind| member.metric(&format!("tollgate_store_errors_total{{kind=\"{kind}\"}}")))
        .iter()
        .sum()
}

/// A hash in Redis may have keys in clear or hashed. A client that sends the hash does not get its
/// tier.
#[test]
fn tiers_of_api_keys_come_from_a_hash() {
    let redis = Redis::start();
    let mut connection = redis.connection().unwrap();
    let hashed = tollgate_policy::hash("key-2");
    let user = tollgate_policy::hash("paula");
    redis::cmd("HSET")
        .arg(&["plans", "key-1", "pro", &hashed, "pro", &user, "pro"])
        .exec(&mut connection)
        .unwrap();
    let limits = "limits: [{name: l, key: [api_key, user], on_missing: share, rate: 2/366d, tiers: {pro: 5/366d}}]";
    let limit = |by: &str, value: &str| {
        let rest = format!("tiers: {{default: free, by: {by}, redis: plans}}\n{limits}\n");
        let member = Member::start(&redis, "deadline: 30s", &rest);
        let body = format!("{{\"attributes\": {{\"{by}\": \"{value}\"}}}}");
        let answer = member.client(Front::Http).post("/v1/peek", &body);
        answer.json()["limits"][0]["limit"].clone()
    };
    let found = ["key-1", "key-2", "key-3", &hashed].map(|key| limit("api_key", key));
    assert_eq!(found, [5, 5, 2, 2]);
    assert_eq!(["paula", "otto", &user].map(|user| limit("user", user)), [5, 2, 2]);
}
