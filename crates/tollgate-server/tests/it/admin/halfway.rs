//! Changes that something comes between.

use super::{Desk, TOKEN, block_on};
use bytes::Bytes;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tollgate::engine::Setup;

/// Whoever waits for longer than this has been forgotten.
const PATIENCE: Duration = Duration::from_secs(30);

async fn call(desk: &Desk, method: &str, path: &str, body: &'static str) -> hyper::Response<Bytes> {
    let request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json");
    let (head, ()) = request.body(()).unwrap().into_parts();
    let peer = "192.0.2.1:5000".parse().unwrap();
    desk.admin.answer(&head, peer, async || Ok(body.as_bytes().into())).await
}

const MODE: (&str, &str, &str) = ("PUT", "/v1/limits/per-user/mode", r#"{"mode": "off"}"#);

/// Makes the audit log a pipe: who writes to it waits until [`write_header_lines`] is there to
/// read.
fn pipe(desk: &Desk) -> PathBuf {
    let path = desk.folder.as_ref().unwrap().join("audit.jsonl");
    std::fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

const O_NONBLOCK: i32 = 0o4000;

fn lines(mut pipe: &std::fs::File) -> Vec<Value> {
    let mut bytes = vec![0; 1 << 16];
    let count = pipe.read(&mut bytes).unwrap_or_default();
    let text = std::str::from_utf8(&bytes[..count]).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_call_that_is_given_up_is_a_change_all_the_same() {
    let desk = Desk::audited("aborted");
    let path = pipe(&desk);
    block_on(async {
        // It gets as far as to wait for the log, and then nobody waits for it.
        let given_up = tokio::time::timeout(Duration::ZERO, call(&desk, MODE.0, MODE.1, MODE.2));
        given_up.await.unwrap_err();
        tokio::task::yield_now().await;
        let log = OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(path);
        let log = log.unwrap();
        let made = async {
            while desk.node.gate.overrides().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, made).await.expect("a line and no change");
        assert_eq!(lines(&log).len(), 1);
    });
}

#[test]
fn a_limit_that_goes_while_its_line_is_written_leaves_a_second_one() {
    let desk = Desk::audited("gone");
    let path = pipe(&desk);
    block_on(async {
        let mut change = std::pin::pin!(call(&desk, MODE.0, MODE.1, MODE.2));
        tokio::time::timeout(Duration::ZERO, &mut change).await.unwrap_err();
        tokio::task::yield_now().await;
        let compiled = tollgate_policy::compile(b"limits: [{name: other, rate: 5/min}]").unwrap();
        let setup = Setup::of(&compiled);
        desk.node.replace(compiled, setup).unwrap();
        let log = OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(path);
        let log = log.unwrap();
        assert_eq!(change.await.status(), 404);
        let lines = lines(&log);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!((&lines[0]["error"], &lines[1]["what"]), (&Value::Null, &json!("mode.set")));
        assert!(lines[1]["error"].as_str().unwrap().contains("`per-user`"), "{}", lines[1]);
    });
}

#[test]
fn the_kill_switch_does_not_wait_for_a_reload() {
    let desk = Desk::new();
    // The reload waits for its file.
    let slow = desk.control.file.lock().unwrap();
    let switched = block_on(async {
        let reload = call(&desk, "POST", "/v1/reload", "");
        let switch = async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            let switched = call(&desk, MODE.0, MODE.1, MODE.2);
            let switched = tokio::time::timeout(PATIENCE, switched).await;
            drop(slow);
            switched
        };
        let (reloaded, switched) = tokio::join!(reload, switch);
        assert_eq!(reloaded.status(), 200);
        switched
    });
    assert_eq!(switched.expect("it waited").status(), 200);
    assert_eq!(desk.node.gate.overrides().len(), 1);
}
