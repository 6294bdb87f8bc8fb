//! Envoy's rate limit service when the fleet has no slot left.

use super::*;

#[test]
fn a_shed_call_is_over_limit_and_takes_nothing() {
    let node = Node::start(
        "shed: {fleet: {capacity: 1, assume: 1h}}\nlimits: [{name: a, key: [descriptor.user], rate: 9/365d, algorithm: fixed-window}]",
        &[],
    );
    let first = node.ask("edge", vec![user("ann")]);
    assert_eq!((first.overall_code, left(&first)), (OK, vec![(true, 8)]));
    for _ in 0..2 {
        let shed = node.ask("edge", vec![user("ann")]);
        assert_eq!(shed.overall_code, OVER_LIMIT);
        assert_eq!(header(&shed, "x-tollgate-source"), Some("shed"));
        let wait_s: u64 = header(&shed, "retry-after").unwrap().parse().unwrap();
        assert!((1..=3).contains(&wait_s), "{wait_s}");
        assert_eq!(shed.statuses[0].limit_remaining, 8, "nothing was taken");
    }
}
