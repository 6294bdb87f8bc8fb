//! `tollgate tail`.

use super::{POLICY, command, start};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_faults::node::Node;

/// A tail with these arguments, once the node has its reader.
fn tail(node: &Node, arguments: &[&str], readers: u64) -> Child {
    let mut command = command(node, &["tail"]);
    let child = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let is_open = || node.metric("tollgate_streams_open") == readers;
    assert!(wait_until(Duration::from_secs(60), is_open), "{arguments:?}");
    child
}

fn lines(child: Child) -> Vec<String> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = BufReader::new(&*output.stdout).lines();
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn decisions_come_as_they_happen_by_limit_user_and_verdict() {
    let node = start(POLICY);
    let refused = tail(&node, &["--refused", "--limit", "per-user", "--count", "2"], 1);
    let user = tail(&node, &["--user", "7", "--count", "2", "--format", "json"], 2);
    for user in ["42", "7"] {
        for _ in 0..4 {
            node.check(user, "/").unwrap();
        }
    }
    let refused = lines(refused);
    assert_eq!(refused.len(), 2);
    for (line, user) in refused.iter().zip(["user=42", "user=7"]) {
        assert!(line.contains(" refused ") && line.contains(user), "{line}");
        assert!(line.contains("0 of 3 left, retry in "), "{line}");
    }
    for line in lines(user) {
        let decision: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&decision["verdict"], &decision["units"]), (&"admitted".into(), &1.into()));
        let shown = decision["key"]["user"].as_str().unwrap();
        let is_clear = decision["limit"] == "per-user";
        assert!(if is_clear { shown == "7" } else { shown.starts_with('~') }, "{decision}");
    }
    let is_over = || node.metric("tollgate_streams_open") == 0;
    assert!(wait_until(Duration::from_secs(60), is_over));
}

#[test]
fn a_node_that_dies_ends_the_stream() {
    let mut node = start(POLICY);
    let child = tail(&node, &[], 1);
    node.kill();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && text.contains("closed the stream"), "{text}");
}

#[test]
fn what_cannot_be_watched_is_said() {
    let node = start(POLICY);
    for (arguments, words) in [
        (&["tail", "--limit", "perusr"] as &[&str], "no limit is called `perusr`"),
        (&["tail", "colour=red"], "no limit has this attribute"),
        (&["tail", "--sample", "2"], "such as 1%"),
        (&["tail", "--user", "~0123456789abcdef"], "send the value instead"),
    ] {
        let output = command(&node, arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
}
