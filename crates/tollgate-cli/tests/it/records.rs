//! Records of a real process over a crash: its decision log and its usage trail.

use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_faults::node::Node;

const POLICY: &str = "
log: {decisions: {only: refused, to: decisions.jsonl}}
usage: {file: usage.jsonl, every: 1s}
limits:
  - {name: per-user, key: [user], rate: 3/d, algorithm: fixed-window, show_keys: true}
";
const WITHIN: Duration = Duration::from_secs(30);

fn usage_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_usage = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("usage"))
    };
    files.filter(is_usage).collect()
}

fn report(files: &[PathBuf], arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let output = command.args(["usage", "report"]).args(files).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn units_outlive_a_crash_and_the_next_start_tells_what_is_missing() {
    let mut node = Node::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), POLICY);
    let folder = node.folder().to_owned();
    for _ in 0..5 {
        node.check("a", "/").unwrap();
    }
    assert!(wait_until(WITHIN, || node.metric("tollgate_usage_rows_total") >= 1));
    let lines = std::fs::read_to_string(folder.join("decisions.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "two of five were refused");
    assert!(lines.iter().all(|line| line["key"]["user"] == "a" && line["verdict"] == "refused"));

    node.kill();
    node.restart();
    assert_eq!(node.logged("the usage trail has a gap"), 1, "{:?}", node.log());
    node.check("b", "/").unwrap();
    assert!(node.end());

    let files = usage_files(&folder);
    assert_eq!(files.len(), 2, "{files:?}");
    let picture = folder.join("usage.svg");
    let plot = ["--by", "user", "--format", "json", "--plot", picture.to_str().unwrap()];
    let (status, out, err) = report(&files, &plot);
    assert!(status == 1 && err.contains("did not end in order"), "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    // After the restart the memory store is empty, so only `b` is new.
    assert_eq!(found["rows"][0]["user"], "a");
    assert_eq!(
        (&found["rows"][0]["admitted"], &found["rows"][0]["refused"]),
        (&3.into(), &2.into())
    );
    assert_eq!((&found["total"]["used"], &found["nodes"]), (&4.into(), &1.into()));
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));

    let (_, table, _) = report(&files, &["--since", "1h"]);
    assert!(table.starts_with("limit     admitted  refused  given_back  used\n"), "{table}");
    let newest = [folder.join("usage.jsonl")];
    let (status, _, err) = report(&newest, &[]);
    assert!(status == 1 && err.contains("which was not given"), "{err}");
    let (status, _, err) = report(&[folder.join("tollgate.yaml")], &[]);
    assert!(status == 2 && err.contains("is not a usage file"), "{err}");
}

#[test]
fn a_reservation_by_a_redis_command_is_logged() {
    let policy = format!("listen: {{resp: \"127.0.0.1:0\"}}{POLICY}");
    let node = Node::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), &policy);
    let address = |line: &String| Some(line.split_once("listening resp ")?.1.trim().to_owned());
    let address = node.log().iter().find_map(address).expect("a line with the address");
    let mut client = TcpStream::connect(address).unwrap();
    let reserve = "*4\r\n$10\r\nTG.RESERVE\r\n$8\r\nper-user\r\n$1\r\n1\r\n$1\r\na\r\n";
    client.write_all(reserve.repeat(4).as_bytes()).unwrap();
    let lines = || std::fs::read_to_string(node.folder().join("decisions.jsonl")).unwrap();
    assert!(wait_until(WITHIN, || lines().lines().count() == 1), "the fourth is refused");
    let line: Value = serde_json::from_str(lines().trim()).unwrap();
    assert_eq!((&line["key"]["user"], &line["verdict"]), (&"a".into(), &"refused".into()));
}

/// A quantity of zero is a peek, so no decision is counted or logged.
#[test]
fn a_throttle_of_quantity_zero_is_a_peek() {
    let policy = format!("listen: {{resp: \"127.0.0.1:0\"}}{POLICY}").replace("refused", "all");
    let node = Node::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), &policy);
    let address = |line: &String| Some(line.split_once("listening resp ")?.1.trim().to_owned());
    let address = node.log().iter().find_map(address).expect("a line with the address");
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"CL.THROTTLE k 1 1 60 0\r\nCL.THROTTLE k 1 1 60 1\r\n").unwrap();
    let counted = r#"tollgate_decisions_total{limit="CL.THROTTLE",outcome="admitted"}"#;
    assert!(wait_until(WITHIN, || node.metric(counted) == 1));
    let lines = || std::fs::read_to_string(node.folder().join("decisions.jsonl")).unwrap();
    assert!(wait_until(WITHIN, || lines().ends_with('\n')));
    // The line of the first command would be the first one.
    assert_eq!((node.metric(counted), lines().lines().count()), (1, 1), "{}", lines());
}

#[test]
fn a_full_disk_stops_no_decision() {
    let policy = POLICY.replace("decisions.jsonl", "/dev/full").replace("refused", "all");
    let node = Node::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), &policy);
    for _ in 0..20 {
        assert!([200, 429].contains(&node.check("a", "/").unwrap().status));
    }
    let dropped = "tollgate_record_lines_dropped_total{log=\"decisions\"}";
    assert!(wait_until(WITHIN, || node.metrics(dropped) == 20));
}

#[test]
fn two_nodes_do_not_share_a_usage_file() {
    let node = Node::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), POLICY);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.current_dir(node.folder()).args(["serve", "--listen", "http=127.0.0.1:0"]);
    let output = command.args(["--listen", "admin=127.0.0.1:0"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("another process writes to it"), "{text}");
}
