//! The Redis front end with a Redis store, and with a failed one.

use super::{RespClient, RespServer, command};
use crate::nodes::{Redis, until};
use std::net::TcpListener;
use tollgate::store::StoreErrorKind;

fn served(redis: &Redis, fields: &str, rest: &str) -> RespServer {
    RespServer::new(&format!("store: {{redis: {{url: '{}', {fields}}}}}\n{rest}", redis.url()))
}

/// Waits until the store is called.
fn connected(served: &RespServer) -> RespClient {
    let mut client = served.client();
    until(|| client.line("CL.THROTTLE ready 9999 9999 1 1").starts_with("0 10000 9999"));
    client
}

const LIMITS: &str =
    "limits: [{name: a, key: [user], rate: 5/366d, algorithm: gcra, on_store_failure: closed}]";

#[test]
fn nodes_share_what_a_key_has_spent() {
    let redis = Redis::start();
    let nodes = [(); 2].map(|()| served(&redis, "deadline: 5s", LIMITS));
    let mut clients = nodes.each_ref().map(connected);
    for left in (0..6).rev() {
        let client = &mut clients[left % 2];
        let answer = client.line("CL.THROTTLE k 5 1 31622400");
        assert!(answer.starts_with(&format!("0 6 {left} -1 ")), "{answer}");
    }
    for client in &mut clients {
        assert!(client.line("CL.THROTTLE k 5 1 31622400").starts_with("1 6 0 "));
    }
    // The same key with another period.
    assert!(clients[0].line("CL.THROTTLE k 5 1 1 0").starts_with("1 6 0 "));
    for left in (0..5).rev() {
        let answer = clients[left % 2].line("TG.CHECK a 1 k");
        assert!(answer.starts_with(&format!("0 5 {left} -1 ")), "{answer}");
    }
    assert!(clients[0].line("TG.CHECK a 1 k").starts_with("1 5 0 "));
    let reserved = clients[0].line("TG.RESERVE a 1 other");
    let id = reserved.split(' ').next_back().unwrap();
    assert!(clients[1].line(&format!("TG.CANCEL {id}")).starts_with("0 5 5 -1 0"));
    // Redis has no value that a client sent, and no key without an expiry.
    let mut connection = redis.connection().unwrap();
    let keys: Vec<String> = ::redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert!(keys.iter().all(|key| key.starts_with("tg:{")), "{keys:?}");
    for key in keys {
        let ttl: i64 = ::redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(ttl > 0, "{key} has no end");
    }
}

/// Pipelined commands share one script call, for any number of keys.
#[test]
fn a_pipeline_is_one_call() {
    let redis = Redis::start();
    let node = served(&redis, "deadline: 5s", LIMITS);
    let mut client = connected(&node);
    let before = redis.scripts_run();
    let mut sent = Vec::new();
    for place in 0..48 {
        let key = (place % 24).to_string();
        sent.extend(command(&["CL.THROTTLE", &key, "9", "1", "86400"]));
        sent.extend(command(&["PING"]));
    }
    client.send(&sent);
    for place in 0..48 {
        let left = if place < 24 { 9 } else { 8 };
        assert!(client.answer().line().starts_with(&format!("0 10 {left} ")));
        assert_eq!(client.answer().line(), "PONG");
    }
    // Two calls, if the bytes arrived in two pieces.
    let calls = redis.scripts_run() - before;
    assert!((1..=3).contains(&calls), "{calls} calls");
}

#[test]
fn without_the_store_each_answers_by_its_policy() {
    let mut redis = Redis::start();
    let closed = served(&redis, "deadline: 2s", &format!("on_store_failure: closed\n{LIMITS}"));
    let open = served(&redis, "deadline: 2s", LIMITS);
    let local = served(&redis, "deadline: 2s", "on_store_failure: {local: {nodes: 2}}");
    let mut clients = [&closed, &open, &local].map(connected);
    redis.kill();
    let [closed, open, local] = &mut clients;
    until(|| closed.line("CL.THROTTLE k 5 1 86400") == "1 6 0 1 1");
    until(|| open.line("CL.THROTTLE k 5 1 86400") == "0 6 6 -1 0");
    assert_eq!(open.line("TG.CHECK a 1 k"), "1 5 0 1000 1000", "the limit's own policy");
    until(|| local.line("CL.THROTTLE probe 5 1 86400 0").starts_with("0 6 3 "));
    let answers = [(); 4].map(|()| local.line("CL.THROTTLE k 5 10 86400"));
    let limited = answers.each_ref().map(|answer| &answer[..1]);
    assert_eq!(limited, ["0", "0", "0", "1"], "half of six: {answers:?}");
    redis.restart();
    until(|| closed.line("CL.THROTTLE k 5 1 86400").starts_with("0 6 5 "));
}

/// A store that accepts connections and never replies: each command waits for the deadline, and
/// then its failure policy decides.
#[test]
fn a_store_that_never_answers_keeps_nobody_beyond_its_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    // Only the deadline can end this call: the circuit breaker stays closed.
    let store =
        format!("store: {{redis: {{url: 'redis://{address}', breaker: {{errors: 1000000}}}}}}");
    for (policy, throttled) in
        [("open", "0 6 6 -1 0"), ("closed", "1 6 0 1 1"), ("{local: {nodes: 2}}", "0 6 2 -1 ")]
    {
        let served = RespServer::new(&format!("{store}\non_store_failure: {policy}\n{LIMITS}"));
        let mut client = served.client();
        // In one write, so in one batch with one deadline.
        let sent = [
            command(&["CL.THROTTLE", "k", "5", "1", "86400"]),
            command(&["TG.CHECK", "a", "1", "k"]),
            command(&["PING"]),
        ];
        client.send(&sent.concat());
        let answer = client.answer().line();
        assert!(answer.starts_with(throttled), "{policy}: {answer}");
        assert_eq!(client.answer().line(), "1 5 0 1000 1000", "the limit's own policy");
        assert_eq!(client.answer().line(), "PONG");
        let timeouts = served.running().node().gate.store_errors();
        let timeouts = timeouts.iter().find(|(kind, _)| *kind == StoreErrorKind::Timeout).unwrap();
        assert_eq!(timeouts.1, 1, "one batch, one deadline");
        let counts = served.running().node().gate.counts();
        let counted = |name: &str| counts.iter().find(|(known, _)| &**known == name).unwrap().1;
        let own = counted("CL.THROTTLE");
        let by_policy = match policy {
            "open" => own.fail_open,
            "closed" => own.fail_closed,
            _ => own.local_admitted,
        };
        assert_eq!((by_policy, counted("a").fail_closed), (1, 1), "{policy}");
    }
}
