//! How long a call waits for a store that never answers. Virtual time makes it exact.

use super::*;
use std::net::TcpListener;
use std::time::Duration;
use tokio::time::Instant;
use tollgate::store::StoreErrorKind;

const LIMITS: &str =
    "limits: [{name: a, key: [descriptor.user], rate: 5/h, on_store_failure: closed}]";

/// A node whose store accepts connections and never replies. Its own deadline is a minute.
fn silent(listener: &TcpListener) -> Node {
    let address = listener.local_addr().unwrap();
    let store =
        format!("{{url: 'redis://{address}', deadline: 60s, breaker: {{errors: 1000000}}}}");
    Node::start(&format!("store: {{redis: {store}}}\n{LIMITS}"), &[])
}

fn timeouts(node: &Node) -> u64 {
    let all = node.running.node().gate.store_errors();
    all.iter().find(|(kind, _)| *kind == StoreErrorKind::Timeout).unwrap().1
}

#[test]
fn the_store_has_what_the_caller_leaves_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let node = silent(&listener);
    let service = RateLimitService::new(node.running.node().clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let ms = Duration::from_millis;
    let told = [
        (None, 15),
        (Some(20), 15),
        (Some(30), 25),
        (Some(60_000), 25),
        (Some(10), 5),
        (Some(5), 0),
    ];
    for (asked, (timeout, waited)) in (0..).zip(told) {
        assert_eq!(timeouts(&node), asked, "each of them is a failure of the store");
        let caller = CallContext { timeout: timeout.map(ms), ..CallContext::default() };
        let request = request("edge", vec![user("ann")]);
        let (response, elapsed) = runtime.block_on(async {
            let now_us = node.running.node().clock.now_us();
            let start = Instant::now();
            let response = decide(&service, &request, caller, now_us).await;
            (response, start.elapsed())
        });
        // A timer of the runtime is late by up to a millisecond.
        assert!((ms(waited)..=ms(waited + 1)).contains(&elapsed), "{timeout:?}: {elapsed:?}");
        assert_eq!(response.overall_code, OVER_LIMIT);
        assert_eq!(header(&response, "x-tollgate-source"), Some("fail-closed"));
    }
}

/// A refund that times out is neither a refusal nor an error.
#[test]
fn charges_and_refunds_share_one_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let node = silent(&listener);
    let service = RateLimitService::new(node.running.node().clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let refund = RateLimitDescriptor { is_negative_hits: true, ..user("bob") };
    let request = request("edge", vec![refund, descriptor(&[("other", "x")]), user("ann")]);
    let (response, elapsed) = runtime.block_on(async {
        let now_us = node.running.node().clock.now_us();
        let start = Instant::now();
        let response = decide(&service, &request, CallContext::default(), now_us).await;
        (response, start.elapsed())
    });
    assert!(elapsed <= Duration::from_millis(17), "{elapsed:?}");
    assert_eq!(left(&response), [(true, 0), (true, 0), (false, 0)]);
}
