//! Tests of single parts, where a whole run shows too little.

use crate::shed::demand::Demand;

#[test]
fn an_excess_of_a_fifth_is_no_overload() {
    let mut demand = Demand::new(1);
    demand.tick(1, 0);
    (0..1_600).for_each(|_| demand.ended(true));
    demand.judge(320);
    assert!(!demand.is_overloaded());
    demand.judge(500);
    assert!(demand.is_overloaded());
}
