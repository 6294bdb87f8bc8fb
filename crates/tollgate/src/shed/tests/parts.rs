//! Tests of single parts, where a whole run shows too little.

use super::{enter, poll};
use crate::shed::demand::Demand;
use crate::shed::{AdaptiveSettings, AdaptiveShedder, Entry, UpstreamOutcome};

#[test]
fn an_excess_of_a_fifth_is_no_overload() {
    let mut demand = Demand::new(1);
    demand.tick(1, 0, [0].into_iter());
    (0..1_600).for_each(|_| demand.ended(true));
    demand.judge(320);
    assert!(!demand.is_overloaded());
    demand.judge(500);
    assert!(demand.is_overloaded());
}

/// A call ends and a request comes every millisecond. Returns when the limit first rises; the node
/// stands still for a second from `pause_ms` on.
fn first_rise_ms(pause_ms: u64) -> u64 {
    let shedder = AdaptiveShedder::with_seed(AdaptiveSettings::new(1), 1);
    let start = shedder.snapshot().limit;
    let (mut tickets, mut waiting) = (Vec::new(), Vec::new());
    for ms in 0..5_000 {
        let now_us = 1_000 * if ms < pause_ms { ms + 1 } else { ms + 1_000 };
        if ms > 100 && !tickets.is_empty() {
            let ticket: crate::shed::ShedTicket = tickets.remove(0);
            ticket.finish(now_us, UpstreamOutcome::Ok);
        }
        match enter(&shedder, now_us, 0) {
            Entry::Admitted(ticket) => tickets.push(ticket),
            Entry::Queued(entry) => waiting.push(entry),
            Entry::Shed(_) => {}
        }
        waiting.retain_mut(|entry| match poll(entry) {
            Some(result) => {
                tickets.extend(result);
                false
            }
            None => true,
        });
        if shedder.snapshot().limit > start {
            return ms;
        }
    }
    panic!("the limit never rises");
}

#[test]
fn a_pause_of_the_node_is_no_measurement() {
    let rise_ms = first_rise_ms(u64::MAX);
    let after_pause_ms = first_rise_ms(rise_ms - 5);
    assert!(after_pause_ms > rise_ms + 20, "{rise_ms} and {after_pause_ms} ms");
}
