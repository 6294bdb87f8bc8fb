//! Changes that are interrupted.

use super::{Desk, TOKEN, block_on};
use bytes::Bytes;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate::engine::GateSetup;

/// A wait that takes longer than this counts as endless.
const PATIENCE: Duration = Duration::from_secs(30);

async fn call(desk: &Desk, method: &str, path: &str, body: &'static str) -> hyper::Response<Bytes> {
    let request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json");
    let (head, ()) = request.body(()).unwrap().into_parts();
    let peer = "192.0.2.1:5000".parse().unwrap();
    desk.admin.answer(&head, peer, async || Ok(body.as_bytes().into())).await
}

const MODE: (&str, &str, &str) = ("PUT", "/v1/limits/per-user/mode", r#"{"mode": "off"}"#);

#[test]
fn a_call_that_is_given_up_is_a_change_all_the_same() {
    let desk = Desk::audited("aborted");
    block_on(async {
        // The change waits for its line in the log, and then its caller disconnects.
        let given_up = tokio::time::timeout(Duration::ZERO, call(&desk, MODE.0, MODE.1, MODE.2));
        given_up.await.unwrap_err();
        let made = async {
            while desk.node.gate.overrides().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, made).await.expect("a line and no change");
    });
    assert_eq!(desk.lines().len(), 1);
}

#[test]
fn a_limit_that_goes_while_its_line_is_written_leaves_a_second_one() {
    let desk = Desk::audited("gone");
    block_on(async {
        let mut change = std::pin::pin!(call(&desk, MODE.0, MODE.1, MODE.2));
        tokio::time::timeout(Duration::ZERO, &mut change).await.unwrap_err();
        // The change starts writing its line on another thread. It goes on only when this task
        // waits again.
        tokio::task::yield_now().await;
        let compiled = tollgate_policy::compile(b"limits: [{name: other, rate: 5/min}]").unwrap();
        let setup = GateSetup::of(&compiled);
        desk.node.replace(compiled, setup).unwrap();
        assert_eq!(change.await.status(), 404);
    });
    let lines = desk.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["error"], &lines[1]["what"]), (&Value::Null, &json!("mode.set")));
    assert!(lines[1]["error"].as_str().unwrap().contains("`per-user`"), "{}", lines[1]);
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
