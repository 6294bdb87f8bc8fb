//! What the log says of a store that went away and came back.

use std::path::Path;
use std::time::Duration;
use tollgate_faults::clock::until;
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
    assert!(until(PATIENCE, || node.logged("the store answers") == 1), "{:#?}", node.log());
    redis.kill();
    // Nobody asks but the node itself, whose looks are what opens the breaker.
    assert!(until(PATIENCE, || shown() && node.metric("tollgate_breaker_open") == 1));
    redis.restart();
    assert!(until(PATIENCE, || !shown() && node.metric("tollgate_breaker_open") == 0));
    let lines = |words: [&str; 2]| words.map(|word| node.logged(word)).iter().sum::<usize>();
    assert_eq!(lines(["left alone for now", "does not answer"]), 1, "{:#?}", node.log());
    assert_eq!(lines(["asked again", "answers again"]), 1, "{:#?}", node.log());
}
