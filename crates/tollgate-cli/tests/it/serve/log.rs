//! A log whose reader is stuck.

use super::process::{Folder, Process, check, get};
use std::process::Command;
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_faults::redis::Redis;

const PATIENCE: Duration = Duration::from_secs(60);
const LISTEN: &str = "listen: {http: '127.0.0.1:0', admin: '127.0.0.1:0'}\n";

/// A value of `/metrics`.
fn metric(admin: &str, name: &str) -> u64 {
    let (_, page) = get(admin, "/metrics");
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

/// Writes a policy whose errors fill more than a pipe, and reloads it until a log line was dropped.
fn fill(folder: &Folder, process: &Process, admin: &str) {
    let fields: String =
        (0..2000).map(|n| format!("unknown-{n}-{}: 1\n", "x".repeat(99))).collect();
    folder.put(&fields);
    let is_dropped = || {
        process.signal("HUP");
        metric(admin, "tollgate_log_lines_dropped_total") > 0
    };
    assert!(wait_until(PATIENCE, is_dropped));
}

#[test]
fn a_log_that_nobody_reads_stops_neither_requests_nor_the_breaker_nor_the_end() {
    let mut redis = Redis::start();
    let file = format!(
        "{LISTEN}store: {{redis: {{url: '{}', deadline: 30s}}}}\nlimits: [{{name: a, key: [user], rate: 3/366d}}]",
        redis.url()
    );
    let folder = Folder::with("unread", &file);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let (http, admin) = (process.address("http"), process.address("admin"));
    fill(&folder, &process, &admin);
    let breaker = || metric(&admin, "tollgate_breaker_open");
    redis.kill();
    assert!(wait_until(PATIENCE, || breaker() == 1));
    assert_eq!(check(&http, "{\"user\": \"1\"}").0, 200, "it fails open");
    redis.restart();
    assert!(wait_until(PATIENCE, || breaker() == 0));
    let statuses = [(); 4].map(|()| check(&http, "{\"user\": \"2\"}").0);
    assert_eq!(statuses, [200, 200, 200, 429]);
    process.signal("TERM");
    assert!(wait_until(PATIENCE, || process.has_ended()), "it waits for its log");
}

#[test]
fn dropped_lines_are_reported_when_the_log_is_read_again() {
    let policy = format!("{LISTEN}limits: [{{name: a, key: [user], rate: 3/366d}}]");
    let folder = Folder::with("read-again", &policy);
    let mut process = Process::start(&folder.0, &["serve", "--log", "error"], &[]);
    let (http, admin) = (process.address("http"), process.address("admin"));
    fill(&folder, &process, &admin);
    assert_eq!(check(&http, "{\"user\": \"1\"}").0, 200);
    let report = process.until(|line| line.contains("log lines were dropped"));
    assert!(report.contains("\"lines\":") && report.contains("\"level\":\"ERROR\""), "{report}");
    folder.put("limits: [{name: a, rat: 5/min}]");
    process.until(|line| line.contains("unknown field `rat`"));
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
}

/// A change without its record would break the promise of the audit log.
#[test]
fn a_change_that_cannot_be_recorded_in_time_is_not_made() {
    let policy = format!(
        "{LISTEN}admin: {{token: {{env: TOKEN}}}}\nlimits: [{{name: a, key: [user], rate: 1/366d}}]"
    );
    let folder = Folder::with("unrecorded", &policy);
    let token = [("TOKEN", "s3cret-token")];
    let mut process = Process::start(&folder.0, &["serve"], &token);
    let (http, admin) = (process.address("http"), process.address("admin"));
    fill(&folder, &process, &admin);
    let switched_off = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["admin", "--url", &format!("http://{admin}"), "mode", "a", "off"])
        .env("TOLLGATE_ADMIN_TOKEN", token[0].1)
        .output()
        .unwrap();
    let said = String::from_utf8(switched_off.stderr).unwrap();
    assert!(!switched_off.status.success() && said.contains("nothing changed"), "{said}");
    assert_eq!(check(&http, "{\"user\": \"1\"}").0, 200);
    assert_eq!(check(&http, "{\"user\": \"1\"}").0, 429, "the limit still holds");
    process.signal("TERM");
    assert!(wait_until(PATIENCE, || process.has_ended()), "it waits for its audit log");
}
