//! Reservations in the adaptive shedder: for services that have no gateway.

use crate::Node;
use tollgate::engine::{ReservationEnd, Rules, Verdict};
use tollgate_observe::top::CountedRequest;
use tollgate_policy::facts::Facts;
use tollgate_tower::wait_in_queue;

/// Enters the adaptive shedder with a reservation that limits admitted: its id and its time to
/// live; `None` if there is no reservation. A request that is shed is no longer allowed, and its
/// reservation is cancelled.
pub(crate) async fn enter(
    node: &Node,
    rules: &Rules,
    (facts, cost): (&Facts<'_>, u64),
    verdict: &mut Verdict<'_>,
    reservation: Option<(&str, u64)>,
) {
    let Some(reservation) = reservation else { return };
    let (gate, now_us) = (&node.gate, node.clock.now_us());
    if let Some(queued) = gate.enter_reserved(rules, now_us, facts, verdict, reservation) {
        let waited = wait_in_queue(node, queued).await;
        let now_us = node.clock.now_us();
        gate.leave_reserved_queue(rules, now_us, verdict, reservation, waited);
    }
    if !verdict.allowed {
        node.top.take_off_shed(now_us, &CountedRequest { rules, facts, cost, verdict });
        // The engine counts a store that fails; then the reservation expires.
        let _ = gate.end(node.clock.now_us(), reservation.0, ReservationEnd::Cancel).await;
    }
}
