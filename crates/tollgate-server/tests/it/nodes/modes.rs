//! Mode overrides for all nodes: set through the store, and kept while it is down.

use super::{Member, Redis, body};
use crate::http::{Answer, Client};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_observe::metrics::Front;

const TOKEN: &str = "a-token-of-some-length";
/// A busy machine may be slow.
const PATIENT: &str = "deadline: 30s";
const LIMITS: &str = "limits:
  - {name: a, match: {path: /a}, key: [user], rate: 0/s}
  - {name: login, match: {path: /login}, keys: [[user], [path]], rate: 0/s}
";

#[track_caller]
fn until(holds: impl FnMut() -> bool) {
    assert!(wait_until(Duration::from_secs(30), holds));
}

/// Nodes of one store, each with its own audit log.
struct Fleet {
    redis: Redis,
    logs: Vec<PathBuf>,
    members: Vec<Member>,
}

impl Fleet {
    fn start(nodes: usize) -> Self {
        let mut fleet = Self { redis: Redis::start(), logs: Vec::new(), members: Vec::new() };
        (0..nodes).for_each(|_| fleet.add(LIMITS));
        fleet
    }

    fn add(&mut self, limits: &str) {
        static LOGS: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "tollgate-fleet-{}-{}",
            std::process::id(),
            LOGS.fetch_add(1, Ordering::Relaxed)
        );
        let log = std::env::temp_dir().join(name);
        self.members.push(start(&self.redis, &log, limits));
        self.logs.push(log);
    }

    fn put(&self, node: usize, target: &str, mode: &str) -> Answer {
        call(&self.members[node], "PUT", target, &format!("{{\"mode\": \"{mode}\"}}"))
    }

    fn clear(&self, node: usize, target: &str) -> Answer {
        call(&self.members[node], "DELETE", target, "")
    }

    /// Waits until every node has this mode for the limit.
    fn until_all(&self, limit: &str, mode: &str) {
        self.members.iter().for_each(|member| until(|| mode_of(member, limit) == mode));
    }

    /// The lines of a node's audit log: each action and its limit.
    fn recorded(&self, node: usize) -> Vec<(String, String)> {
        let lines = lines(&self.logs[node]);
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        lines.iter().map(|line| (word(&line["what"]), word(&line["target"]["limit"]))).collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.logs.iter().for_each(|log| drop(std::fs::remove_file(log)));
    }
}

fn start(redis: &Redis, log: &Path, limits: &str) -> Member {
    let admin = format!("admin: {{token: {TOKEN}, audit: {{file: '{}'}}}}\n", log.display());
    Member::start(redis, PATIENT, &format!("{admin}{limits}"))
}

fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(member: &Member, method: &str, target: &str, body: &str) -> Answer {
    send(member, method, target, body).answer()
}

/// A call whose answer was not read yet.
fn send(member: &Member, method: &str, target: &str, body: &str) -> Client {
    let mut client = member.client(Front::Admin);
    client.send(
        format!(
            "{method} {target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .as_bytes(),
    );
    client
}

fn policy(member: &Member) -> Value {
    call(member, "GET", "/v1/policy", "").json()
}

fn mode_of(member: &Member, limit: &str) -> String {
    let policy = policy(member);
    let limits = policy["limits"].as_array().unwrap();
    let found = limits.iter().find(|one| one["name"] == limit).unwrap();
    found["mode"].as_str().unwrap().to_owned()
}

fn status(member: &Member, path: &str) -> u16 {
    member.client(Front::Http).post("/v1/check", &body("u", path)).status
}

#[test]
fn a_mode_set_at_one_node_is_in_force_on_all_and_recorded_on_each() {
    let fleet = Fleet::start(3);
    let set = fleet.put(0, "/v1/limits/a/mode", "off").json();
    let told = json!({"name": "a", "scope": "fleet", "before": "enforce", "after": "off", "overridden": true});
    assert_eq!(set, told);
    assert_eq!(status(&fleet.members[0], "/a"), 200, "at once where it was set");
    fleet.until_all("a", "off");
    for (node, member) in fleet.members.iter().enumerate() {
        assert_eq!(status(member, "/a"), 200);
        assert_eq!(status(member, "/login"), 429, "other limits are as they were");
        let listed = policy(member)["overrides"][0].clone();
        assert_eq!((&listed["name"], &listed["scope"]), (&json!("a"), &json!("fleet")));
        assert!(listed["who"]["token"].as_str().unwrap().starts_with("sha256:"), "{listed}");
        assert_eq!(fleet.recorded(node), [("mode.set".into(), "a".into())]);
        let line = &lines(&fleet.logs[node])[0];
        assert_eq!(line["target"]["scope"], "fleet");
        assert_eq!(line["who"], listed["who"], "the operator, not the node");
        assert_eq!(member.metric("tollgate_mode_overrides{scope=\"fleet\"}"), 1);
        assert_eq!(member.metric("tollgate_mode_overrides{scope=\"node\"}"), 0);
    }
    assert_eq!(fleet.clear(2, "/v1/limits/a/mode").json()["after"], "enforce");
    fleet.until_all("a", "enforce");
    for node in 0..3 {
        let done = ["mode.set", "mode.clear"].map(|what| (what.to_owned(), "a".to_owned()));
        assert_eq!(fleet.recorded(node), done);
        assert_eq!(policy(&fleet.members[node])["overrides"], json!([]));
    }
}

#[test]
fn all_limits_and_those_of_one_entry_are_switched_by_one_name() {
    let fleet = Fleet::start(2);
    fleet.put(1, "/v1/limits/login/mode", "shadow");
    fleet.until_all("login/user", "shadow");
    fleet.until_all("login/path", "shadow");
    fleet.put(0, "/v1/limits/*/mode", "off");
    fleet.until_all("login/path", "off");
    fleet.until_all("a", "off");
    fleet.clear(1, "/v1/limits/*/mode");
    fleet.until_all("a", "enforce");
    fleet.until_all("login/path", "shadow");
}

#[test]
fn a_node_may_differ_and_says_so() {
    let fleet = Fleet::start(2);
    assert_eq!(fleet.put(0, "/v1/limits/a/mode?scope=node", "shadow").json()["scope"], "node");
    let masked = fleet.put(0, "/v1/limits/a/mode", "off").json();
    assert_eq!(masked["after"], "shadow", "this node keeps its own");
    assert!(masked["note"].as_str().unwrap().contains("scope=node"), "{masked}");
    until(|| mode_of(&fleet.members[1], "a") == "off");
    assert_eq!(mode_of(&fleet.members[0], "a"), "shadow");
    let scopes = |member| {
        let listed = policy(member)["overrides"].as_array().unwrap().clone();
        listed
            .iter()
            .map(|one| (one["scope"].clone(), one["in_effect"].clone()))
            .collect::<Vec<_>>()
    };
    let both = [(json!("fleet"), json!(false)), (json!("node"), json!(true))];
    assert_eq!(scopes(&fleet.members[0]), both);
    fleet.clear(0, "/v1/limits/a/mode?scope=node");
    assert_eq!(mode_of(&fleet.members[0], "a"), "off");
}

#[test]
fn modes_outlive_nodes_and_wait_for_limits() {
    let mut fleet = Fleet::start(1);
    fleet.put(0, "/v1/limits/a/mode", "off");
    fleet.members.clear();
    // A node whose policy lacks the limit, and then a node whose policy has it.
    fleet.add("limits: [{name: other, rate: 1/s}]\n");
    let listed = policy(&fleet.members[0])["overrides"][0].clone();
    assert_eq!((&listed["name"], &listed["in_effect"]), (&json!("a"), &json!(false)));
    fleet.add(LIMITS);
    assert_eq!(status(&fleet.members[1], "/a"), 200, "from the first request on");
    assert_eq!(fleet.recorded(2), [("mode.set".into(), "a".into())]);
    assert_eq!(fleet.put(0, "/v1/limits/a/mode", "off").status, 404, "no limit here has the name");
    assert_eq!(fleet.clear(0, "/v1/limits/a/mode").status, 200, "but it can be cleared");
    fleet.members.swap(0, 1);
    until(|| mode_of(&fleet.members[0], "a") == "enforce");
}

#[test]
fn a_node_without_its_store_keeps_what_it_knew() {
    let mut fleet = Fleet::start(2);
    fleet.put(0, "/v1/limits/a/mode", "off");
    fleet.until_all("a", "off");
    fleet.redis.kill();
    until(|| fleet.members.iter().all(|member| member.metric("tollgate_breaker_open") == 1));
    let refused = fleet.put(0, "/v1/limits/a/mode", "enforce");
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("scope=node"), "{}", refused.body);
    assert_eq!(mode_of(&fleet.members[0], "a"), "off");
    let failed = lines(&fleet.logs[0]);
    assert_eq!((failed.len(), failed[2]["error"].is_string()), (3, true), "{failed:?}");
    assert_eq!(fleet.put(1, "/v1/limits/a/mode?scope=node", "shadow").status, 200);
    assert_eq!([0, 1].map(|node| mode_of(&fleet.members[node], "a")), ["off", "shadow"]);
}

#[test]
fn a_store_that_lost_the_modes_has_them_again() {
    let fleet = Fleet::start(2);
    fleet.put(0, "/v1/limits/a/mode", "off");
    fleet.put(1, "/v1/limits/login/mode", "off");
    fleet.until_all("login/user", "off");
    fleet.clear(0, "/v1/limits/login/mode");
    fleet.until_all("a", "off");
    fleet.until_all("login/user", "enforce");
    let mut connection = fleet.redis.connection().unwrap();
    let mut stored = || {
        let text: Option<String> =
            redis::cmd("GET").arg("tg:{modes}:t").query(&mut connection).unwrap();
        text.unwrap_or_default()
    };
    let before = stored();
    assert_eq!(before.lines().count(), 2, "{before}");
    redis::cmd("FLUSHALL").exec(&mut fleet.redis.connection().unwrap()).unwrap();
    until(|| stored() == before);
    let mut fleet = fleet;
    fleet.add(LIMITS);
    assert_eq!(mode_of(&fleet.members[2], "a"), "off");
    assert_eq!(mode_of(&fleet.members[2], "login/user"), "enforce", "cleared stays cleared");
    assert_eq!([0, 1].map(|node| fleet.recorded(node).len()), [3, 3], "nothing came into force");
}

#[test]
fn a_reload_keeps_the_modes_of_the_fleet() {
    let fleet = Fleet::start(2);
    fleet.put(0, "/v1/limits/a/mode", "off");
    fleet.until_all("a", "off");
    assert_eq!(call(&fleet.members[1], "POST", "/v1/reload", "").status, 200);
    assert_eq!(mode_of(&fleet.members[1], "a"), "off");
}

#[test]
fn a_mode_that_cannot_be_recorded_is_not_in_force_until_it_can() {
    let mut fleet = Fleet::start(1);
    // A folder that is removed: the log can be opened at the start, but not afterwards.
    let folder = fleet.logs[0].with_extension("folder");
    std::fs::create_dir_all(&folder).unwrap();
    let log = folder.join("audit.jsonl");
    fleet.members.push(start(&fleet.redis, &log, LIMITS));
    std::fs::remove_dir_all(&folder).unwrap();
    fleet.put(0, "/v1/limits/a/mode", "off");
    let degraded = || fleet.members[1].ready().1["detail"]["mode overrides"].is_string();
    until(degraded);
    assert_eq!((status(&fleet.members[0], "/a"), status(&fleet.members[1], "/a")), (200, 429));
    std::fs::create_dir_all(&folder).unwrap();
    until(|| mode_of(&fleet.members[1], "a") == "off");
    assert_eq!(lines(&log).len(), 1);
    until(|| !degraded());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn two_operators_at_once_leave_one_answer_on_all_nodes() {
    let fleet = Fleet::start(3);
    for round in 0..5 {
        let modes = ["off", "shadow", "enforce"].into_iter().enumerate();
        let calls = modes.map(|(node, mode)| {
            let (member, body) =
                (&fleet.members[(node + round) % 3], format!("{{\"mode\": \"{mode}\"}}"));
            send(member, "PUT", "/v1/limits/a/mode", &body)
        });
        let calls: Vec<Client> = calls.collect();
        calls.into_iter().for_each(|mut client| assert_eq!(client.answer().status, 200));
        let versions = |member: &Member| policy(member)["overrides"].clone();
        let all = || fleet.members.iter().map(versions).collect::<Vec<_>>();
        until(|| {
            let all = all();
            all[0] == all[1] && all[1] == all[2]
        });
    }
}
