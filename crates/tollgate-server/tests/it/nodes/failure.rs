//! Nodes without their store, over HTTP, and their recovery.

use super::{Member, Redis, body, until};
use crate::http::Answer;
use tollgate_observe::metrics::Front;

const LIMITS: &str = "limits:
  - {name: open, match: {path: /open}, key: [user], rate: 1/366d}
  - {name: closed, match: {path: /closed}, key: [user], rate: 3/366d, on_store_failure: closed}
  - {name: local, match: {path: /local}, key: [user], rate: 7/366d, algorithm: fixed-window, on_store_failure: {local: {nodes: 3}}}
  - {name: m-open, match: {path: [/most, /each]}, key: [user], rate: 1/366d}
  - {name: m-local, match: {path: [/most, /each]}, key: [user], rate: 4/366d, algorithm: fixed-window, on_store_failure: {local: {nodes: 2}}}
  - {name: m-shadow, match: {path: [/most, /each]}, key: [user], rate: 1/366d, on_store_failure: closed, mode: shadow}
  - {name: m-closed, match: {path: /each}, key: [user], rate: 3/366d, on_store_failure: closed}
  - {name: m-none, match: {path: [/none, /both]}, key: [user], rate: 2/366d, on_store_failure: {local: {nodes: 3}}}
  - {name: m-both, match: {path: /both}, key: [user], rate: 3/366d, on_store_failure: closed}
";

fn ask(member: &Member, path: &str) -> Answer {
    member.client(Front::Http).post("/v1/check", &body("a", path))
}

fn source(answer: &Answer) -> String {
    answer.json()["source"].as_str().unwrap().to_owned()
}

/// Waits until the node has noticed that the store failed, or that it is back.
fn settle(member: &Member, source_now: &str) {
    until(|| source(&ask(member, "/open")) == source_now);
}

/// Each row shows its source. A closed limit refuses the request, and then no local share is
/// charged.
fn several_limits_of_one_request(member: &Member) {
    let sources = |answer: &Answer| {
        let rows = answer.json()["limits"].as_array().unwrap().clone();
        rows.iter().map(|row| row["source"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        let each = ask(member, "/each");
        assert_eq!((each.status, each.field("retry-after")), (503, Some("1")), "{each:?}");
        assert_eq!(each.field("x-tollgate-source"), Some("fail-closed"));
        assert_eq!(sources(&each), ["fail-open", "local-fallback", "fail-open", "fail-closed"]);
    }
    for _ in 0..2 {
        let most = ask(member, "/most");
        assert_eq!((most.status, most.field("x-tollgate-source")), (200, Some("fail-open")));
        assert_eq!(sources(&most), ["fail-open", "local-fallback", "fail-open"]);
    }
    let most = ask(member, "/most");
    assert_eq!((most.status, most.field("x-tollgate-source")), (429, Some("local-fallback")));
    assert_eq!(ask(member, "/none").status, 429, "a share of nothing refuses");
    let both = ask(member, "/both");
    assert_eq!((both.status, both.field("x-tollgate-source")), (503, Some("fail-closed")));
    assert_eq!((&*source(&both), sources(&both)[0].as_str()), ("fail-closed", "local-fallback"));
    assert_eq!(ask(member, "/elsewhere").json()["source"], "none");
}

#[test]
fn each_limit_answers_by_its_own_policy_and_heals() {
    let mut redis = Redis::start();
    let members = [(); 2].map(|()| Member::start(&redis, "deadline: 2s", LIMITS));
    for member in &members {
        settle(member, "store");
        assert_eq!(ask(member, "/closed").status, 200);
    }
    redis.kill();
    for member in &members {
        settle(member, "fail-open");
        let answer = ask(member, "/open");
        assert_eq!((answer.status, answer.field("x-tollgate-source")), (200, Some("fail-open")));
        let answer = ask(member, "/closed");
        assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")), "{answer:?}");
        assert_eq!(answer.field("x-tollgate-source"), Some("fail-closed"));
        let local = [(); 3].map(|()| ask(member, "/local"));
        assert_eq!(local.each_ref().map(|answer| answer.status), [200, 200, 429], "a third of 7");
        assert_eq!(local[2].field("x-tollgate-source"), Some("local-fallback"));
        several_limits_of_one_request(member);
        until(|| member.ready().1["detail"].get("store").is_some());
        assert_eq!(member.ready().0, 200, "some limits still answer");
        assert_eq!(member.metric("tollgate_breaker_open"), 1);
        assert!(
            member.metric("tollgate_decisions_total{limit=\"open\",outcome=\"fail_open\"}") > 0
        );
        assert_eq!(
            member.metric("tollgate_decisions_total{limit=\"closed\",outcome=\"fail_closed\"}"),
            1
        );
        let kinds = ["timeout", "unreachable", "breaker_open", "rejected"];
        let errors = kinds
            .map(|kind| member.metric(&format!("tollgate_store_errors_total{{kind=\"{kind}\"}}")));
        assert!(errors.iter().sum::<u64>() > 4 && errors[2] > 0, "{errors:?}");
        assert_eq!(member.metric("tollgate_store_errors_total{kind=\"busy\"}"), 0);
    }
    redis.restart();
    for member in &members {
        until(|| ask(member, "/closed").field("x-tollgate-source").is_none());
        until(|| member.ready().1["detail"].get("store").is_none());
        assert_eq!(member.metric("tollgate_breaker_open"), 0);
    }
    // The new server has no counts, so the limit has three units; two were used above.
    let last = [0, 1].map(|n| ask(&members[n], "/closed").status);
    assert_eq!(last, [200, 429]);
}

#[test]
fn a_node_starts_without_its_store_and_is_not_ready_where_nothing_could_pass() {
    let mut redis = Redis::start();
    redis.kill();
    let closed = "limits: [{name: l, rate: 5/366d, on_store_failure: closed}]";
    let open =
        "limits: [{name: l, rate: 5/366d}, {name: m, rate: 5/366d, on_store_failure: closed}]";
    let [closed, open] = [closed, open].map(|limits| Member::start(&redis, "deadline: 2s", limits));
    until(|| closed.ready().0 == 503);
    until(|| open.ready().1["detail"].get("store").is_some());
    let (status, ready) = closed.ready();
    assert_eq!((status, &ready["ready"]), (503, &false.into()));
    // The error is that of the call, not that of an open circuit breaker.
    until(|| closed.ready().1["detail"]["store"].as_str().unwrap().contains("cannot be reached"));
    assert_eq!(open.ready().0, 200, "degraded");
    assert_eq!(ask(&closed, "/").status, 503);
    redis.restart();
    until(|| closed.ready().0 == 200);
    until(|| ask(&closed, "/").status == 200);
}

#[test]
fn a_store_that_only_reads_shows_before_anyone_asks() {
    let redis = Redis::start();
    let member = Member::start(&redis, "deadline: 20s", LIMITS);
    let mut connection = redis.connection().unwrap();
    until(|| redis.scripts_run() > 0);
    let mut full = |bytes: &str| {
        let mut set = redis::cmd("CONFIG");
        set.arg(&["SET", "maxmemory", bytes]).exec(&mut connection).unwrap();
    };
    full("1");
    until(|| member.ready().1["detail"].get("store").is_some());
    full("0");
    until(|| member.ready().1["detail"].get("store").is_none());
}

#[test]
fn a_password_that_is_nowhere_is_named_at_the_start() {
    let folder = std::env::temp_dir().join(format!("tollgate-secretless-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tollgate.yaml");
    let policy = "store: {redis: {url: 'redis://127.0.0.1:1/0', password: {env: TOLLGATE_NO_SUCH_PASSWORD}}}";
    std::fs::write(&file, policy).unwrap();
    let config = tollgate_server::config::Config::file(&file);
    let error = tollgate_server::serve::Server::start(config).unwrap_err().to_string();
    std::fs::remove_dir_all(folder).unwrap();
    assert!(
        error.contains("TOLLGATE_NO_SUCH_PASSWORD") && error.contains("store.redis.password"),
        "{error}"
    );
}
