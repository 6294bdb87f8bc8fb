//! The log and `/readyz` of a node whose store fails, recovers, or refuses a command.

use std::path::Path;
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_faults::cluster::Cluster;
use tollgate_faults::node::Node;
use tollgate_faults::redis::Redis;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn an_outage_is_one_line_and_its_end_another() {
    let mut redis = Redis::start();
    let file = format!(
        "store: {{redis: {{url: '{}'}}}}\nlimits: [{{name: a, key: [user], rate: 5/s}}]\n",
        redis.url()
    );
    let node = Node::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), &file);
    let shown = || node.get("/readyz").is_ok_and(|answer| answer.body.contains("store"));
    assert!(wait_until(PATIENCE, || node.logged("the store answers") == 1), "{:#?}", node.log());
    redis.kill();
    // No client sends requests: the node's own probes open the circuit breaker.
    assert!(wait_until(PATIENCE, || shown() && node.metric("tollgate_breaker_open") == 1));
    redis.restart();
    assert!(wait_until(PATIENCE, || !shown() && node.metric("tollgate_breaker_open") == 0));
    let lines = |words: [&str; 2]| words.map(|word| node.logged(word)).iter().sum::<usize>();
    assert_eq!(lines(["not calling the store", "does not answer"]), 1, "{:#?}", node.log());
    assert_eq!(lines(["calling the store again", "answers again"]), 1, "{:#?}", node.log());
}

fn started(store: &str, limits: &str) -> Node {
    let file = format!("store: {{redis: {{{store}}}}}\nlimits: [{limits}]\n");
    Node::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), &file)
}

/// With `replica_reads`, peeks go to a replica and charges to the primary.
#[test]
fn a_replica_answers_what_only_looks() {
    let primary = Redis::listen(&["--repl-diskless-sync-delay", "0"]);
    let replica = Redis::listen(&["--replicaof", &format!("127.0.0.1 {}", primary.port())]);
    replica.until_says("INFO replication", "master_link_status:up");
    let store =
        |more: &str| format!("url: 'redis://127.0.0.1:{}', deadline: 5s{more}", primary.port());
    let limit = "{name: a, key: [user], rate: 5/h, algorithm: fixed-window}";
    let stats = |server: &Redis| format!("{:?}", server.run("INFO commandstats"));
    let body = tollgate_faults::node::body("ann", "/", 1);
    let peek =
        |node: &Node| tollgate_faults::http::ask(node.http, "/v1/peek", Some(&body)).unwrap();
    let plain = started(&store(""), limit);
    assert!(wait_until(PATIENCE, || peek(&plain).source.is_none()), "{:#?}", plain.log());
    (0..20).for_each(|_| assert_eq!(peek(&plain).status, 200));
    assert!(!stats(&replica).contains("_ro:"), "replica reads are off");
    let node = started(&store(", replica_reads: true"), limit);
    let is_read = || peek(&node).status == 200 && stats(&replica).contains("_ro:");
    assert!(wait_until(PATIENCE, is_read), "{:#?}", node.log());
    for _ in 0..5 {
        assert_eq!(node.check("ann", "/").unwrap().status, 200);
    }
    assert_eq!(node.check("ann", "/").unwrap().status, 429);
    assert!(wait_until(PATIENCE, || peek(&node).status == 429), "the replica hears of it");
    let stats = stats(&replica);
    assert!(!stats.contains("cmdstat_evalsha:") && !stats.contains("cmdstat_eval:"), "{stats}");
}

const CLOSED: &str = "{name: a, key: [user], rate: 5/s, on_store_failure: closed}";

fn is_ready(node: &Node) -> bool {
    node.get("/readyz").is_ok_and(|answer| answer.status == 200)
}

#[test]
fn a_cluster_that_lost_a_part_is_still_one_to_be_asked() {
    // A timeout so long that no replica takes over meanwhile.
    let mut cluster = Cluster::start(Duration::from_secs(60));
    let node = started(&cluster.store(), CLOSED);
    assert!(wait_until(PATIENCE, || node.logged("the store answers") == 1), "{:#?}", node.log());
    for lost in 0..3 {
        let replica = cluster.replica_of(lost);
        [lost, replica].into_iter().for_each(|server| cluster.servers[server].kill());
        let told = || node.metric("tollgate_breaker_open") == 1;
        let asked = |n: usize| node.check(&format!("user {n}"), "/");
        let mut n = 0;
        let found = wait_until(PATIENCE, || {
            n += 1;
            let _ = asked(n);
            told()
        });
        assert!(found, "{:#?}", node.log());
        let shown = || node.get("/readyz").map(|answer| (answer.status, answer.body));
        let named = || shown().is_ok_and(|(status, body)| status == 200 && body.contains("a part"));
        assert!(wait_until(PATIENCE, named), "server {lost}: {:?}", shown());
        [lost, replica].into_iter().for_each(|server| cluster.servers[server].restart());
        assert!(
            wait_until(PATIENCE, || node.metric("tollgate_breaker_open") == 0 && is_ready(&node))
        );
    }
    assert_eq!(node.logged("does not answer"), 0, "{:#?}", node.log());
}

#[test]
fn a_node_is_not_ready_before_its_store_has_answered() {
    let mut redis = Redis::start();
    redis.kill();
    let node = started(&format!("url: '{}'", redis.url()), CLOSED);
    assert!(wait_until(PATIENCE, || node.metric("tollgate_breaker_open") == 1));
    assert!(!is_ready(&node));
    redis.restart();
    assert!(wait_until(PATIENCE, || is_ready(&node)));
}

#[test]
fn leases_without_their_rights_are_told_of() {
    let redis = Redis::start();
    redis.run("ACL SETUSER default -hset");
    let limit = "{name: a, key: [user], rate: 100000/h, algorithm: fixed-window, consistency: leased, on_store_failure: closed}";
    let node = started(&format!("url: '{}'", redis.url()), limit);
    assert!(wait_until(PATIENCE, || node.logged("the store answers") == 1), "{:#?}", node.log());
    let told = wait_until(PATIENCE, || {
        let _ = node.check("one", "/");
        node.logged("rejects some script calls") == 1
    });
    assert!(told, "{:#?}", node.log());
    assert_eq!(node.metric("tollgate_breaker_open"), 0);
}
