//! `tollgate explain` with a file, and against a running node.

use crate::serve::process::{Folder, Process, check};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

const TOKEN: &str = "s3cret-token";
const POLICY: &str = r#"
listen: {http: '127.0.0.1:0', admin: '127.0.0.1:0'}
admin: {token: {env: TG_TEST_TOKEN}}
identity: {user: header.x-user-id}
limits:
  - {name: per-user, match: {path: "/api/**"}, key: [user], rate: 3/h, show_keys: true}
  - {name: login, match: {method: POST, path: /login}, key: [ip], rate: 5/min}
"#;
const ROWS: &str = r#"{"time": 1699999100, "attributes": {"user": "42", "path": "/api/x"}}
{"time": 1700000010, "attributes": {"user": "42", "path": "/api/x"}}
{"time": 1700000020, "attributes": {"user": "42", "path": "/api/x"}}
{"time": 1700009000, "attributes": {"user": "42", "path": "/api/x"}}
"#;

/// Status, standard output and standard error of `tollgate explain` in a folder.
fn explain(folder: &Folder, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("explain").args(arguments).current_dir(&folder.0).env_remove("TOLLGATE_ADMIN_URL");
    command.env("TOLLGATE_ADMIN_TOKEN", TOKEN);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_file_explains_a_request_over_empty_counts() {
    let folder = Folder::with("explain-file", POLICY);
    let arguments =
        ["--header", "X-User-Id: 42", "--path", "/api/x", "--at", "2023-11-14T22:13:20Z"];
    let (status, out, err) = explain(&folder, &arguments, "");
    assert_eq!((status, &*err), (0, ""));
    assert_eq!(
        out,
        "admitted at 2023-11-14T22:13:20.000000Z, by: memory\n\n\
         LIMIT     ANSWER          KEY                         RATE                WHY\n\
         per-user  admits          user=42 (header x-user-id)  3/h sliding-window  0 of 3 in this window: 3 left\n\
         login     does not apply                                                  path is /api/x, not /login\n"
    );
}

#[test]
fn a_cost_is_as_large_as_in_a_check() {
    let folder = Folder::with("explain-cost", POLICY);
    let cost = u64::MAX.to_string();
    let arguments = ["--user", "42", "--path", "/api/x", "--cost", &cost];
    let (status, out, err) = explain(&folder, &arguments, "");
    assert_eq!((status, &*err), (1, ""), "{out}");
    assert!(out.starts_with("refused"), "{out}");
}

#[test]
fn requests_up_to_the_instant_count() {
    let folder = Folder::with("explain-rows", POLICY);
    std::fs::write(folder.0.join("rows.jsonl"), ROWS).unwrap();
    let rows = ["--requests", "rows.jsonl", "--user", "42", "--path", "/api/x"];
    let at = |time| explain(&folder, &[&rows[..], &["--at", time]].concat(), "");
    let (status, out, _) = at("1700000015");
    assert_eq!(status, 0, "{out}");
    // 915 s after the start of the hour, three quarters of the previous hour still count.
    assert!(out.contains("1 of 3 in this window, 1 of the 1 before still count: 1 left"), "{out}");
    let (status, out, _) = at("1700000030.5");
    assert_eq!(status, 1, "{out}");
    let first = out.lines().next().unwrap();
    assert!(first.starts_with("refused with 429 at 2023-11-14T22:13:50.500000Z"), "{out}");
    assert!(first.contains("; retry after 46 min "), "a wait for people: {out}");
    let (status, out, _) = explain(&folder, &rows, "");
    assert_eq!(status, 0, "after the last row: {out}");
    assert!(out.contains("at 2023-11-15T00:43:20"), "{out}");
}

#[test]
fn the_tier_is_named_with_its_origin() {
    let tiers = "tiers: {default: free, by: user, map: {'42': pro}}\n";
    let limits = "limits: [{name: l, key: [user], rate: 3/h, tiers: {pro: 9/h}}]\n";
    let folder = Folder::with("explain-tier", &format!("{tiers}{limits}"));
    for (user, expected) in [("42", "tier: pro, from: map user"), ("7", "tier: free, by default")] {
        let (_, out, _) = explain(&folder, &["--user", user], "");
        assert_eq!(out.lines().nth(1), Some(expected), "{out}");
    }
    for (tier, expected) in [("pro", "tier: pro, as given"), ("gold", "tier: free, by default")] {
        let (_, out, _) = explain(&folder, &["--user", "42", "--tier", tier], "");
        assert_eq!(out.lines().nth(1), Some(expected), "{out}");
    }
}

#[test]
fn a_line_of_the_decision_log_gives_time_and_keys() {
    let folder = Folder::with("explain-line", POLICY);
    let line = r#"{"time":"2023-11-14T22:13:20Z","front":"gateway","verdict":"refused","limits":[{"name":"per-user","allowed":false,"mode":"enforce","source":"memory","limit":3,"remaining":0,"key":{"user":"~0123456789abcdef"}}]}"#;
    let arguments = ["--decision", "-", "--path", "/api/x", "--format", "json"];
    let (status, out, err) = explain(&folder, &arguments, line);
    assert_eq!((status, &*err), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["time"], "2023-11-14T22:13:20.000000Z");
    let key = &answer["limits"][0]["decisions"][0]["key"][0];
    assert_eq!(key["value"], "~0123456789abcdef", "a hash is shown unchanged");
    assert_eq!(answer["logged"]["limits"][0]["remaining"], 0);
    let (_, out, _) = explain(&folder, &["--decision", line], "");
    assert!(out.contains("The line holds keys only"), "{out}");
    for bad in ["{}", "refused"] {
        assert_eq!(explain(&folder, &["--decision", bad], "").0, 2);
    }
}

#[test]
fn a_running_node_explains_by_its_own_counts() {
    let folder = Folder::with("explain-live", POLICY);
    let mut process = Process::start(&folder.0, &["serve"], &[("TG_TEST_TOKEN", TOKEN)]);
    let http = process.address("http");
    let url = format!("http://{}", process.address("admin"));
    let live = ["--url", &url, "--user", "42", "--path", "/api/x"];
    for status in [0, 0, 0, 1] {
        let (code, out, err) = explain(&folder, &live, "");
        assert_eq!((code, &*err), (status, ""), "{out}");
        check(&http, r#"{"user": "42", "path": "/api/x"}"#);
    }
    let (code, _, err) = explain(&folder, &[&live[..], &["--at", "1700000000"]].concat(), "");
    assert_eq!(code, 2);
    assert!(err.contains("a running node explains the present"), "{err}");
    let (code, _, err) = explain(&folder, &["--url", &url, "--ip", "nowhere"], "");
    assert_eq!((code, err.starts_with("tollgate: ip: ")), (2, true), "{err}");
}

#[test]
fn bad_input_has_status_2_and_a_reason() {
    let folder = Folder::with("explain-bad", POLICY);
    for (arguments, reason) in [
        (&["--at", "yesterday"][..], "not a time"),
        (&["--path", "/a//../b"], "answered with 400"),
        (&["--ip", "nowhere"], "ip: "),
        (&["--user", "1", "--attribute", "user=2"], "user is given twice"),
        (&["--config", "missing.yaml"], "cannot read missing.yaml"),
        (&["--config", "x", "--url", "y"], "cannot be used with"),
        (&["--header", "x"], "'Name: value'"),
    ] {
        let (status, out, err) = explain(&folder, arguments, "");
        assert_eq!((status, &*out), (2, ""), "{arguments:?}");
        assert!(err.contains(reason), "{arguments:?}: {err}");
    }
    let (status, out, _) = explain(&folder, &["--api-key", "-"], "hunter2\n");
    assert_eq!(status, 0);
    assert!(!out.contains("hunter2"));
}
