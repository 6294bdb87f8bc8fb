//! The gRPC front end of several nodes on one Redis.

use super::*;
use crate::nodes::Redis;

const FILE: &str = "
domain: edge
descriptors:
  - {key: user, rate_limit: {name: each, unit: year, requests_per_unit: 3}}
  - {key: seen, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
";
const LIMITS: &str = "limits:
  - {name: spike, key: [descriptor.tenant], rate: 4/h, algorithm: gcra}
  - {name: tokens, key: [descriptor.account], rate: 10/365d, algorithm: fixed-window, debt: true}
";

/// Two nodes on one store.
fn nodes(redis: &Redis, compat: &str) -> [Node; 2] {
    let store = format!("store: {{redis: {{url: '{}'}}}}", redis.url());
    let rest = format!("{store}\nenvoy: {{configs: edge.yaml, compat: {compat}}}\n{LIMITS}");
    [(); 2].map(|()| Node::start(&rest, &[("edge.yaml", FILE)]))
}

/// The statuses of a call to one of the nodes. Tokio's time stands still while a blocking task
/// runs, so no deadline passes: on a loaded machine 15 ms are too short.
fn ask(nodes: &[Node; 2], turn: usize, descriptors: Vec<RateLimitDescriptor>) -> Vec<(bool, u32)> {
    let service = RateLimitService::new(nodes[turn % 2].running.node().clone());
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let request = request("edge", descriptors);
    let response = runtime.block_on(async {
        let (decided, until) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || until.recv().is_err());
        let now_us = nodes[turn % 2].running.node().clock.now_us();
        let response = decide(&service, &request, CallContext::default(), now_us).await;
        drop(decided);
        assert!(busy.await.unwrap());
        response
    });
    assert_ne!(header(&response, "x-tollgate-source"), Some("fail-open"), "it was decided");
    left(&response)
}

#[test]
fn nodes_count_together_as_the_original_does() {
    let redis = Redis::start();
    let nodes = nodes(&redis, "envoy");
    let turns: Vec<_> = (0..5).map(|turn| ask(&nodes, turn, vec![user("ann")])[0]).collect();
    assert_eq!(turns, [(true, 2), (true, 1), (true, 0), (false, 0), (false, 0)]);
    assert_eq!(ask(&nodes, 0, vec![hits(user("bob"), 2)]), [(true, 1)]);
    assert_eq!(ask(&nodes, 1, vec![hits(user("bob"), 2)]), [(false, 0)]);
    assert_eq!(ask(&nodes, 0, vec![hits(user("bob"), 0)]), [(false, 0)], "the refusal counted");
    let refund = RateLimitDescriptor { is_negative_hits: true, ..hits(user("bob"), 2) };
    assert_eq!(ask(&nodes, 1, vec![refund]), [(true, 1)]);
    assert_eq!(ask(&nodes, 0, vec![user("bob")]), [(true, 0)]);
    let seen = || descriptor(&[("seen", "x")]);
    assert_eq!(ask(&nodes, 0, vec![seen()]), ask(&nodes, 1, vec![seen()]), "in its shadow");
}

#[test]
fn nodes_count_together_strictly() {
    let redis = Redis::start();
    let nodes = nodes(&redis, "strict");
    let ann = |value| vec![hits(user("ann"), value)];
    assert_eq!(ask(&nodes, 0, ann(2)), [(true, 1)]);
    assert_eq!(ask(&nodes, 1, ann(2)), [(false, 1)], "free");
    let all = vec![user("bob"), hits(user("ann"), 2), descriptor(&[("tenant", "t")])];
    assert_eq!(ask(&nodes, 0, all), [(true, 3), (false, 1), (true, 4)], "all or nothing");
    assert_eq!(ask(&nodes, 1, ann(1)), [(true, 0)]);
    let tenants: Vec<_> =
        (0..5).map(|turn| ask(&nodes, turn, vec![descriptor(&[("tenant", "t")])])[0].0).collect();
    assert_eq!(tenants, [true, true, true, true, false]);
    let brought = || vec![own(user("ann"), 2, YEAR)];
    let turns: Vec<_> = (0..3).map(|turn| ask(&nodes, turn, brought())[0]).collect();
    assert_eq!(turns, [(true, 1), (true, 0), (false, 0)]);
    let bill = |value| vec![hits(descriptor(&[("account", "a")]), value)];
    assert!(ask(&nodes, 0, bill(25))[0].0, "the full cost is charged");
    assert!(!ask(&nodes, 1, bill(0))[0].0);
}
