//! The limits of the policy, by name.

use super::{RespServer, Value, command};

const LIMITS: &str = "
limits:
  - {name: per-user, match: {path: /never}, key: [user], rate: 3/h, algorithm: gcra}
  - {name: pair, key: [ip, user], rate: 10/min, algorithm: fixed-window}
  - {name: all, rate: 2/h, algorithm: gcra}
  - {name: quiet, key: [user], rate: 1/h, algorithm: gcra, disclose: false}
  - {name: watched, key: [user], rate: 1/h, algorithm: gcra, mode: shadow}
  - {name: 'off', key: [user], rate: 1/h, mode: 'off'}
  - {name: free, key: [user], rate: unlimited}
  - {name: strict, key: [user], rate: 5/h, algorithm: gcra, on_missing: refuse}
  - {name: slots, key: [user], rate: 2, algorithm: concurrency, ttl: 30s}
  - {name: tiered, key: [user], rate: 1/h, algorithm: gcra, tiers: {pro: 9/h}}
tiers: {default: pro}
";

#[test]
fn a_limit_decides_whatever_it_matches() {
    let served = RespServer::new(LIMITS);
    let mut client = served.client();
    assert_eq!(client.line("TG.PEEK per-user 1 42"), "0 3 3 -1 0");
    assert_eq!(client.line("TG.CHECK per-user 1 42"), "0 3 2 -1 1200000");
    assert!(client.line("tg.check per-user 1 42 2").starts_with("0 3 0 -1 "));
    let refused = client.line("TG.CHECK per-user 1 42");
    let params: Vec<i64> = refused.split(' ').map(|word| word.parse().unwrap()).collect();
    assert_eq!(params[..3], [1, 3, 0], "{refused}");
    assert!((1_100_000..=1_200_000).contains(&params[3]), "{refused}");
    assert!(client.line("TG.CHECK per-user 1 43 4").starts_with("1 3 3 -1 "), "never");
    assert!(client.line("TG.PEEK per-user 1 43 3").starts_with("0 3 3 -1 "));
    assert!(client.line("TG.CHECK all 0").starts_with("0 2 1 -1 "));
    assert!(client.line("TG.CHECK all 0 2").starts_with("1 2 1 "));
    assert!(client.line("TG.CHECK tiered 1 42").starts_with("0 9 8 "), "the default tier");
}

#[test]
fn values_are_read_as_everywhere() {
    let served = RespServer::new(LIMITS);
    let mut client = served.client();
    assert!(client.line("TG.CHECK pair 2 ::ffff:1.2.3.4 a").starts_with("0 10 9 "));
    assert!(client.line("TG.CHECK pair 2 1.2.3.4 a").starts_with("0 10 8 "), "the same address");
    assert!(client.line("TG.CHECK pair 2 1.2.3.4 b").starts_with("0 10 9 "));
    assert!(client.line("TG.CHECK pair 2 nowhere a").starts_with("-ERR value 1: "));
    assert_eq!(client.ask(&["TG.CHECK", "per-user", "1", ""]).line(), "0 -1 -1 -1 0", "absent");
    assert_eq!(client.ask(&["TG.CHECK", "strict", "1", ""]).line(), "1 5 0 -1 0", "refused");
    let long = "a".repeat(4097);
    let answer = client.ask(&["TG.CHECK", "per-user", "1", &long]).line();
    assert_eq!(answer, "-ERR value 1: it has more than 4096 bytes");
    client.send(b"*4\r\n$8\r\nTG.CHECK\r\n$8\r\nper-user\r\n$1\r\n1\r\n$1\r\n\xff\r\n");
    assert_eq!(client.answer().line(), "-ERR value 1: it is not UTF-8");
}

#[test]
fn what_does_not_apply_says_nothing_and_what_is_not_disclosed_little() {
    let served = RespServer::new(LIMITS);
    let mut client = served.client();
    assert_eq!(client.line("TG.CHECK off 1 42"), "0 -1 -1 -1 0");
    assert_eq!(client.line("TG.CHECK free 1 42"), "0 -1 -1 -1 0");
    assert_eq!(client.line("TG.CHECK quiet 1 42"), "0 -1 -1 -1 -1");
    let refused = client.line("TG.CHECK quiet 1 42");
    assert!(refused.starts_with("1 -1 -1 3") && refused.ends_with(" -1"), "{refused}");
    assert_eq!(client.line("TG.CHECK watched 1 42"), "0 1 0 -1 3600000");
    assert!(client.line("TG.CHECK watched 1 42").starts_with("0 1 0 -1 "), "only watched");
}

#[test]
fn mistakes_are_explained() {
    let served = RespServer::new(LIMITS);
    let mut client = served.client();
    for (words, answer) in [
        ("TG.CHECK nope 0", "-ERR no limit is called 'nope'"),
        (
            "TG.CHECK pair 1 a",
            "-ERR limit 'pair' has the key ip, user: 2 values, not 1; the second argument is how many values follow",
        ),
        (
            "TG.CHECK all 1 a",
            "-ERR limit 'all' has no key: 0 values, not 1; the second argument is how many values follow",
        ),
        (
            "TG.CHECK pair x a",
            "-ERR after the limit comes how many values follow, such as TG.CHECK per-user 1 42",
        ),
        ("TG.CHECK pair 2 1.2.3.4", "-ERR fewer values than announced"),
        ("TG.CHECK all 0 -1", "-ERR a cost is a whole number from 0"),
        ("TG.CHECK all 0 1.5", "-ERR a cost is a whole number from 0"),
        ("TG.CHECK all 0 18446744073709551616", "-ERR a cost is a whole number from 0"),
        ("TG.CHECK all", "-ERR wrong number of arguments for 'tg.check' command"),
        ("TG.RESERVE slots 1 a 1 0", "-ERR a ttl is in milliseconds, from 1 to 3600000"),
        ("TG.RESERVE slots 1 a 1 3600001", "-ERR a ttl is in milliseconds, from 1 to 3600000"),
        ("TG.SETTLE x", "-ERR wrong number of arguments for 'tg.settle' command"),
        ("TG.SETTLE x -1", "-ERR a cost is a whole number from 0"),
        ("TG.SETTLE x 1", "-NOTFOUND no such reservation; it may have expired"),
        ("TG.SETTLE x 4294967296", "-ERR a settled cost is at most 4294967295"),
        ("TG.SETTLE x 1 ok 12", "-NOTFOUND no such reservation; it may have expired"),
        ("TG.SETTLE x 1 late", REPORT),
        ("TG.SETTLE x 1 ok 3600001", REPORT),
        ("TG.SETTLE x 1 ok 1.5", REPORT),
        ("TG.SETTLE x 1 ok 1 1", REPORT),
        ("TG.CANCEL x", "-NOTFOUND no such reservation; it may have expired"),
    ] {
        assert_eq!(client.line(words), answer, "{words}");
    }
    assert!(client.line("TG.CHECK all 0 1 1").starts_with("-ERR usage: TG.CHECK"));
    assert!(client.line("TG.CHECK all 0 18446744073709551615").starts_with("1 2 2 -1 "));
}

const REPORT: &str =
    "-ERR usage: TG.SETTLE id cost [ok|overloaded [latency_ms]], with a latency of at most 3600000";

fn reserve(answer: Value) -> (String, Value) {
    let Value::Array(mut values) = answer else { panic!("{answer:?}") };
    assert_eq!(values.len(), 6);
    let id = values.pop().unwrap();
    (Value::Array(values).line(), id)
}

#[test]
fn a_reservation_is_settled_cancelled_or_kept() {
    let served = RespServer::new(LIMITS);
    let mut client = served.client();
    let (answer, Value::Bulk(first)) = reserve(client.ask(&["TG.RESERVE", "slots", "1", "a"]))
    else {
        panic!("no reservation")
    };
    assert_eq!(answer, "0 2 1 -1 30000");
    let (answer, second) = reserve(client.ask(&["TG.RESERVE", "slots", "1", "a", "1", "60000"]));
    assert_eq!(answer, "0 2 0 -1 60000");
    let (answer, none) = reserve(client.ask(&["TG.RESERVE", "slots", "1", "a"]));
    assert!(answer.starts_with("1 2 0 "), "{answer}");
    assert_eq!(none, Value::Null);
    let first = String::from_utf8(first).unwrap();
    assert!(client.ask(&["TG.CANCEL", &first]).line().starts_with("0 2 1 -1 "));
    assert!(client.ask(&["TG.CANCEL", &first]).line().starts_with("0 2 1 -1 "), "the same again");
    let conflict = "-CONFLICT the reservation has already ended in another way";
    assert_eq!(client.ask(&["TG.SETTLE", &first, "1"]).line(), conflict);
    assert!(client.ask(&["TG.SETTLE", &second.line(), "1"]).line().starts_with("0 2 2 -1 "));

    // The estimate was two and the cost three, so the limit has a debt of one unit.
    let (_, id) = reserve(client.ask(&["TG.RESERVE", "per-user", "1", "b", "2"]));
    assert!(client.ask(&["TG.SETTLE", &id.line(), "3"]).line().starts_with("1 3 0 "));
    assert!(client.line("TG.CHECK per-user 1 b").starts_with("1 3 0 "));
}

#[test]
fn a_shed_reservation_is_limited_and_a_settle_frees_its_slot() {
    let served = RespServer::new(
        "shed: {adaptive: {min: 1, max: 1}}\nlimits: [{name: a, key: [user], rate: 9/366d, algorithm: fixed-window}]",
    );
    let mut client = served.client();
    let ask = ["TG.RESERVE", "a", "1", "ann"];
    let (answer, first) = reserve(client.ask(&ask));
    assert!(answer.starts_with("0 9 8 -1 "), "{answer}");
    // The slot is taken: this reservation waits, is shed, and is refunded.
    let (answer, none) = reserve(client.ask(&ask));
    let parts: Vec<i64> = answer.split(' ').map(|part| part.parse().unwrap()).collect();
    assert_eq!((parts[0], none), (1, Value::Null), "{answer}");
    assert!((1_000..=3_000).contains(&parts[3]), "the wait is the shedder's: {answer}");
    let settled = client.ask(&["TG.SETTLE", &first.line(), "1", "OK", "12"]).line();
    assert!(settled.starts_with("0 9 8 "), "{settled}");
    let (answer, next) = reserve(client.ask(&ask));
    assert!(answer.starts_with("0 9 7 -1 "), "{answer}");
    assert!(client.ask(&["TG.SETTLE", &next.line(), "1", "overloaded"]).line().starts_with("0 "));
}

/// Commands before and after a reservation are decided in order.
#[test]
fn reservations_keep_their_place_in_a_pipeline() {
    let served = RespServer::new(LIMITS);
    let mut client = served.client();
    let commands = ["CHECK", "RESERVE", "CHECK", "PEEK", "CHECK"];
    let sent: Vec<u8> = commands
        .iter()
        .flat_map(|name| super::command(&[&format!("TG.{name}"), "per-user", "1", "p"]))
        .collect();
    client.send(&sent);
    let answers: Vec<String> = commands.iter().map(|_| client.answer().line()).collect();
    for (answer, start) in answers.iter().zip(["0 3 2", "0 3 1", "0 3 0", "1 3 0", "1 3 0"]) {
        assert!(answer.starts_with(start), "{answers:?}");
    }
}

/// A key of `CL.THROTTLE` is never a key of a policy.
#[test]
fn keys_of_callers_never_meet_those_of_the_policy() {
    let served = RespServer::new(LIMITS);
    let mut client = served.client();
    for key in ["42", "\u{3}42", "all", ""] {
        let answer = client.ask(&["CL.THROTTLE", key, "0", "1", "3600"]).line();
        assert!(answer.starts_with("0 1 0"), "{answer}");
    }
    assert_eq!(client.line("TG.PEEK per-user 1 42"), "0 3 3 -1 0");
    assert_eq!(client.line("TG.PEEK all 0"), "0 2 2 -1 0");
}

/// The key is hashed before the map lookup, as in every front end.
#[test]
fn an_api_key_has_the_tier_of_the_map() {
    let served = RespServer::new(
        "
tiers: {default: free, by: api_key, map: {key-1: pro, sha256:7c36b0a9dedde119c75165957c6c9c187e65df1ee5db87c4c58ad503ad88cbe3: pro}}
limits: [{name: l, key: [api_key], rate: 1/h, algorithm: gcra, tiers: {pro: 9/h}}]
",
    );
    let mut client = served.client();
    for (key, start) in [("key-1", "0 9 8 "), ("key-2", "0 9 8 "), ("key-3", "0 1 0 ")] {
        assert!(client.line(&format!("TG.CHECK l 1 {key}")).starts_with(start), "{key}");
    }
}

const FIRST_OF: &str = "
limits:
  - {name: tokens, key: {first_of: [user, [ip, header.user-agent], ip]}, rate: 3/h, algorithm: fixed-window}
  - {name: strict, key: {first_of: [user, account]}, rate: 3/h, on_missing: refuse}
  - {name: weighted, key: [user], rate: 100/h, cost: [{match: {user: vip}, units: 0}, {match: {path: /a}, units: 50}, {match: {not: {path: /b}}, units: 2}]}
";

/// `[user]` and `[ip]` have one value each, so values need names.
#[test]
fn keys_in_order_take_values_by_name() {
    let served = RespServer::new(FIRST_OF);
    let mut client = served.client();
    assert!(client.line("TG.CHECK tokens 1 user=127.0.0.1").starts_with("0 3 2 "));
    assert!(
        client.line("TG.CHECK tokens 1 ip=127.0.0.1").starts_with("0 3 2 "),
        "a space of its own"
    );
    let all = "TG.CHECK tokens 3 header.user-agent=curl ip=127.0.0.1 user=127.0.0.1";
    assert!(client.line(all).starts_with("0 3 1 "), "the user comes first");
    assert!(client.line("TG.CHECK tokens 2 ip=::ffff:127.0.0.1 user= 2").starts_with("0 3 0 "));
    assert!(client.line("TG.CHECK tokens 1 ip=127.0.0.1").starts_with("1 3 0 "));
    let pair = "TG.CHECK tokens 2 ip=127.0.0.1 header.user-agent=a=b";
    assert!(client.line(pair).starts_with("0 3 2 "));
    assert_eq!(client.line("TG.CHECK tokens 1 header.user-agent=curl"), "0 -1 -1 -1 0", "none");
    assert_eq!(client.line("TG.CHECK strict 0"), "1 3 0 -1 0", "refused");
    let help = "write name=value, with a name of: user | ip, header.user-agent | ip";
    for words in ["TG.CHECK tokens 1 42", "TG.CHECK tokens 1 users=42", "TG.CHECK tokens 1 =42"] {
        assert_eq!(client.line(words), format!("-ERR value 1: {help}"), "{words}");
    }
    assert!(client.line("TG.CHECK tokens 1 ip=nowhere").starts_with("-ERR value 1: "));
}

#[test]
fn a_value_that_is_given_twice_is_an_error() {
    let served = RespServer::new(FIRST_OF);
    let mut client = served.client();
    for command in ["TG.CHECK", "TG.PEEK", "TG.RESERVE"] {
        let twice = client.line(&format!("{command} tokens 3 user=1 ip=127.0.0.1 user=2"));
        assert_eq!(twice, "-ERR value 3: `user` has a value already", "{command}");
    }
    let same = client.line("TG.CHECK tokens 2 user=1 user=1");
    assert_eq!(same, "-ERR value 2: `user` has a value already");
    assert!(client.line("TG.CHECK tokens 1 user=1").starts_with("0 3 2 "), "nothing was charged");
}

/// Candidates and limits of shedders cannot be named by clients.
#[test]
fn limits_of_the_programs_own_cannot_be_named() {
    let served = RespServer::new(
        "limits: [{name: all, rate: 9/h, candidate: {rate: 5/h}}]
classes: [{name: a, match: {path: /a}}, {name: b, default: true}]
shed: {fleet: {capacity: 10, reserve: {a: 20%}}, adaptive: {}}
",
    );
    let mut client = served.client();
    for name in ["all//candidate", "shed/fleet", "shed/fleet/b", "shed/adaptive"] {
        for command in ["TG.CHECK", "TG.PEEK", "TG.RESERVE"] {
            let answer = client.line(&format!("{command} {name} 0"));
            assert_eq!(answer, format!("-ERR no limit is called '{name}'"), "{command}");
        }
    }
    assert!(client.line("TG.CHECK all 0").starts_with("0 9 8 "));
}

/// Only the key's attributes are known here.
#[test]
fn costs_by_match_see_the_key_alone() {
    let served = RespServer::new(FIRST_OF);
    let mut client = served.client();
    assert!(client.line("TG.CHECK weighted 1 vip 9").starts_with("0 100 100 "));
    assert!(client.line("TG.CHECK weighted 1 ann 9").starts_with("0 100 82 "));
}

/// `TG.CHECK` charges the candidate of its limit, also in a pipeline. `TG.PEEK` does not, and no
/// reply shows the candidate.
#[test]
fn candidates_are_counted() {
    let file = "limits:
  - {name: a, key: [user], rate: 1/366d, algorithm: gcra, candidate: {rate: 3/366d}}
  - {name: b, key: [user], rate: 9/366d, algorithm: gcra}";
    let served = RespServer::new(file);
    let mut client = served.client();
    let words = ["TG.PEEK a 1 k", "TG.CHECK a 1 k", "TG.CHECK b 1 k", "PING", "TG.CHECK a 1 k"];
    for round in 0..2 {
        let all: Vec<Vec<u8>> =
            words.iter().map(|line| command(&line.split(' ').collect::<Vec<_>>())).collect();
        client.send(&all.concat());
        let replies: Vec<String> = words.iter().map(|_| client.answer().line()).collect();
        let first = if round == 0 { "0 1 " } else { "1 1 " };
        let expected = [first, first, "0 9 ", "PONG", "1 1 "];
        for (reply, expected) in replies.iter().zip(expected) {
            assert!(reply.starts_with(expected), "{replies:?}");
        }
    }
    let counts = served.running().node().gate.candidate_counts();
    let counts = &counts[0].1;
    assert_eq!((counts.same, counts.would_refuse, counts.would_admit, counts.keys), (2, 0, 2, 1));
}
