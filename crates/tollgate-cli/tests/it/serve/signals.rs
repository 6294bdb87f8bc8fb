use super::process::{Folder, Process, check, get};
use std::io::{Read, Write};
use std::net::TcpStream;

const LISTEN: &str = "listen: {http: '127.0.0.1:0', admin: '127.0.0.1:0'}\n";

fn policy(rate: &str) -> String {
    format!("{LISTEN}limits: [{{name: a, key: [user], algorithm: gcra, rate: {rate}}}]")
}

#[test]
fn either_signal_ends_it_well() {
    for signal in ["TERM", "INT"] {
        let folder = Folder::with(&format!("ends-{signal}"), LISTEN);
        let mut process = Process::start(&folder.0, &["serve"], &[]);
        process.address("http");
        process.signal(signal);
        assert_eq!(process.end().code(), Some(0), "{signal}");
    }
}

/// A request whose body is incomplete.
fn half(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
        Content-Length: 18\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    // `100 Continue` shows that the server waits for the body.
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[test]
fn a_request_under_way_is_answered_before_the_end() {
    let folder = Folder::with("finish", &policy("5/min"));
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let (http, admin) = (process.address("http"), process.address("admin"));
    assert_eq!(get(&admin, "/readyz").0, 200);
    let mut request = half(&http);
    process.signal("TERM");
    process.until(|line| line.contains("draining"));
    let (status, text) = get(&admin, "/readyz");
    assert!(status == 503 && text.contains("draining"), "{text}");
    request.write_all(b"{\"attributes\": {}}").unwrap();
    let mut answer = String::new();
    request.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(process.end().code(), Some(0));
}

#[test]
fn a_second_signal_does_not_wait() {
    let folder = Folder::with("at-once", &policy("5/min"));
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let http = process.address("http");
    let _request = half(&http);
    process.signal("INT");
    process.until(|line| line.contains("draining"));
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(128 + 15));
    assert!(!process.lines.iter().any(|line| line.contains("stopped")), "{:#?}", process.lines);
}

#[test]
fn a_hangup_reads_the_file_again() {
    let folder = Folder::with("hangup", &policy("1/366d"));
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let (http, admin) = (process.address("http"), process.address("admin"));
    let admitted = || check(&http, "{\"user\": \"42\"}").0 == 200;
    assert!(admitted() && !admitted());
    process.signal("HUP");
    let line = process.until(|line| line.contains("policy in force"));
    assert!(line.contains("\"generation\":2"), "{line}");
    assert!(!admitted(), "counts stay");
    let (_, metrics) = get(&admin, "/metrics");
    assert!(metrics.contains("tollgate_reload_total{result=\"ok\"} 1\n"), "{metrics}");
}

#[test]
fn a_bad_file_is_said_in_the_log_the_metrics_and_the_health() {
    let folder = Folder::with("bad", &policy("1/366d"));
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let (http, admin) = (process.address("http"), process.address("admin"));
    folder.put("limits: [{name: a, rat: 5/min}]");
    let line = process.until(|line| line.contains("last good policy stays"));
    assert!(line.contains("error[TG002]: unknown field `rat`"), "{line}");
    assert_eq!(check(&http, "{\"user\": \"42\"}").0, 200);
    assert_eq!(check(&http, "{\"user\": \"42\"}").0, 429);
    let (status, health) = get(&admin, "/readyz");
    assert!(status == 200 && health.contains("unknown field `rat`"), "{health}");
    let (_, metrics) = get(&admin, "/metrics");
    assert!(metrics.contains("tollgate_reload_total{result=\"error\"} 1\n"), "{metrics}");
    folder.put(&policy("3/366d"));
    process.until(|line| line.contains("policy in force"));
    let statuses = [(); 4].map(|()| check(&http, "{\"user\": \"43\"}").0);
    assert_eq!(statuses, [200, 200, 200, 429]);
}

fn pipe(folder: &Folder, name: &str) -> std::path::PathBuf {
    let path = folder.0.join(name);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn a_policy_from_a_pipe_stays_as_it_was_read() {
    let folder = Folder::new("pipe");
    let path = pipe(&folder, "policy");
    let mut process = Process::start(&folder.0, &["serve", "--config", "policy"], &[]);
    std::fs::write(path, policy("1/366d")).unwrap();
    let http = process.address("http");
    process.signal("HUP");
    let line = process.until(|line| line.contains("last good policy stays"));
    assert!(line.contains("not a regular file"), "{line}");
    let admitted = || check(&http, "{\"user\": \"42\"}").0 == 200;
    assert!(admitted() && !admitted(), "its limit is in force");
    process.signal("TERM");
    assert!(process.end().success());
}

#[test]
fn a_pipe_in_place_of_the_policy_holds_nothing_up() {
    let folder = Folder::with("swapped", &policy("1/366d"));
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    process.address("http");
    std::fs::rename(pipe(&folder, "next"), folder.0.join("tollgate.yaml")).unwrap();
    process.until(|line| line.contains("last good policy stays"));
    folder.put(&policy("2/366d"));
    process.until(|line| line.contains("\"generation\":2"));
    process.signal("TERM");
    assert!(process.end().success());
}

#[test]
fn a_file_system_that_does_not_answer_does_not_keep_it() {
    let file = format!("{}\nadmin: {{audit: {{file: audit.jsonl}}}}", policy("5/min"));
    let folder = Folder::with("stuck", &file);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let http = process.address("http");
    // A reload opens the log, and opening a pipe without a reader blocks.
    std::fs::rename(pipe(&folder, "next"), folder.0.join("audit.jsonl")).unwrap();
    process.signal("HUP");
    assert_eq!(check(&http, "{\"user\": \"42\"}").0, 200);
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
}
