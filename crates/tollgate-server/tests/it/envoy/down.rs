//! Envoy while the node is down, and while the store is down.

use super::*;

#[test]
fn without_the_node_envoy_does_as_it_is_told() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let open = Envoy::start(gone, |file| file);
    assert_eq!(open.get("/", &[]).status, 200);
    assert_eq!(open.stat("ratelimit.failure_mode_allowed"), 1);
    let closed = Envoy::start(gone, |file| {
        let open = "failure_mode_deny: false";
        assert!(file.contains(open));
        file.replace(open, "failure_mode_deny: true")
    });
    assert_eq!(closed.get("/", &[]).status, 500);
}

#[test]
fn without_the_store_each_limit_does_as_it_says() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let policy = format!(
        "store: {{redis: {{url: 'redis://{gone}'}}}}
limits:
  - {{name: per-address, key: [descriptor.remote_address], rate: 1/min}}
  - {{name: per-key, key: [descriptor.api_key], rate: 100/min, on_store_failure: closed}}
"
    );
    let node = Node::start(&policy, &[]);
    let envoy = Envoy::start(node.address(), patient);
    for _ in 0..3 {
        let answer = envoy.get("/", &[]);
        assert_eq!((answer.status, field(&answer, "x-tollgate-source")), (200, Some("fail-open")));
    }
    let answer = envoy.get("/", &[("x-api-key", "k")]);
    assert_eq!((answer.status, field(&answer, "retry-after")), (429, Some("1")));
    assert_eq!(field(&answer, "x-tollgate-source"), Some("fail-closed"));
}
