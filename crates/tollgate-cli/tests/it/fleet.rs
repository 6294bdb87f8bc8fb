//! `tollgate admin mode` for all nodes of a store.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_faults::cluster::Cluster;
use tollgate_faults::node::Node;
use tollgate_faults::redis::Redis;

const PATIENCE: Duration = Duration::from_secs(60);
const PROGRAM: &str = env!("CARGO_BIN_EXE_tollgate");

fn nodes<const N: usize>(store: &str) -> [Node; N] {
    let file = format!(
        "admin: {{token: a-token}}
store: {{redis: {{{store}, deadline: 5s}}}}
limits:
  - {{name: a, match: {{path: /a}}, key: [user], rate: 0/s, on_store_failure: closed}}
  - {{name: login, match: {{path: /login}}, keys: [[user], [path]], rate: 0/s}}
"
    );
    [(); N].map(|()| {
        let node = Node::start(Path::new(PROGRAM), &file);
        assert!(
            wait_until(PATIENCE, || node.logged("the store answers") == 1),
            "{:#?}",
            node.log()
        );
        node
    })
}

fn admin(node: &Node, arguments: &[&str]) -> String {
    let mut command = Command::new(PROGRAM);
    command.args(["admin", "--url", &format!("http://{}", node.admin)]).args(arguments);
    let output = command.env("TOLLGATE_ADMIN_TOKEN", "a-token").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until every node gives this answer for the path.
fn until_all(nodes: &[Node], path: &str, status: u16) {
    for node in nodes {
        let is_so = || node.check("u", path).is_ok_and(|answer| answer.status == status);
        assert!(wait_until(PATIENCE, is_so), "{path} {status}: {:#?}", node.log());
    }
}

#[test]
fn a_switch_reaches_all_nodes_and_outlives_them_and_the_data() {
    let mut redis = Redis::start();
    let mut nodes: [Node; 3] = nodes(&format!("url: '{}'", redis.url()));
    until_all(&nodes, "/a", 429);
    let told = admin(&nodes[0], &["mode", "a", "off"]);
    assert_eq!(told, "a on all nodes: enforce -> off, until it is cleared\n");
    until_all(&nodes, "/a", 200);
    assert!(nodes[1].end());
    nodes[1].restart();
    assert_eq!(nodes[1].check("u", "/a").unwrap().status, 200, "from its first request on");
    let policy = admin(&nodes[1], &["policy"]);
    assert!(policy.contains("all nodes") && policy.contains("sha256:"), "{policy}");

    redis.run("FLUSHALL");
    let written = || format!("{:?}", redis.run("GET tg:{modes}:t")).contains("off");
    assert!(wait_until(PATIENCE, written));

    redis.kill();
    let is_open = |node: &Node| node.metric("tollgate_breaker_open") == 1;
    assert!(wait_until(PATIENCE, || nodes.iter().all(is_open)));
    until_all(&nodes, "/a", 200);
    redis.restart();
    assert!(wait_until(PATIENCE, || !nodes.iter().any(is_open)));
    admin(&nodes[2], &["mode", "*", "off"]);
    until_all(&nodes, "/login", 200);
    admin(&nodes[1], &["mode", "*", "clear"]);
    until_all(&nodes, "/login", 429);
    until_all(&nodes, "/a", 200);
    admin(&nodes[1], &["mode", "a", "clear"]);
    until_all(&nodes, "/a", 429);
    let listed: Value =
        serde_json::from_str(&admin(&nodes[0], &["policy", "--format", "json"])).unwrap();
    assert_eq!(listed["overrides"].as_array().map(Vec::len), Some(0));
    assert_eq!(nodes[0].logged("\"what\":\"mode.set\""), 2, "{:#?}", nodes[0].log());
}

#[test]
fn a_cluster_has_the_switches_too() {
    let cluster = Cluster::start(Duration::from_secs(2));
    let nodes: [Node; 2] = nodes(&cluster.store());
    admin(&nodes[0], &["mode", "login", "off"]);
    until_all(&nodes, "/login", 200);
    admin(&nodes[1], &["mode", "login", "clear"]);
    until_all(&nodes, "/login", 429);
}
