//! Reservations in the adaptive shedder, for services without a gateway.

use crate::Node;
use std::mem;
use std::sync::Arc;
use tollgate::engine::{ReservationEnd, Rules, Verdict};
use tollgate_observe::top::CountedRequest;
use tollgate_policy::facts::Facts;
use tollgate_tower::{Engine, wait_in_queue};

/// Enters the adaptive shedder with an admitted reservation: its id and its time to live; `None`
/// without a reservation. If the request is shed, it is refused, and its reservation is cancelled.
/// If an HTTP/2 stream is reset while its request waits, its reservation is cancelled too. A client
/// of HTTP/1.1 or RESP may have closed only its sending side: its reservation expires.
pub(crate) async fn enter(
    node: &Arc<Node>,
    rules: &Rules,
    (facts, cost): (&Facts<'_>, u64),
    verdict: &mut Verdict<'_>,
    reservation: Option<(&str, u64)>,
) {
    let Some(reservation) = reservation else { return };
    let (gate, now_us) = (&node.gate, node.clock.now_us());
    if let Some(queued) = gate.enter_reserved(rules, now_us, facts, verdict, reservation) {
        let abandoned = AbandonedReservation { node, id: reservation.0 };
        let waited = wait_in_queue(&**node, queued).await;
        mem::forget(abandoned);
        let now_us = node.clock.now_us();
        gate.leave_reserved_queue(rules, now_us, verdict, reservation, waited);
    }
    if !verdict.allowed {
        node.top.take_off_shed(now_us, &CountedRequest { rules, facts, cost, verdict });
        // The engine counts a failure of the store; then the reservation expires.
        let _ = gate.end(node.clock.now_us(), reservation.0, ReservationEnd::Cancel).await;
    }
}

/// Cancels a reservation on drop: its request was cancelled, and no client has the id.
struct AbandonedReservation<'a> {
    node: &'a Arc<Node>,
    id: &'a str,
}

impl Drop for AbandonedReservation<'_> {
    fn drop(&mut self) {
        let (node, id) = (self.node.clone(), self.id.to_owned());
        self.node.spawn(Box::pin(async move {
            let _ = node.gate.end(node.clock.now_us(), &id, ReservationEnd::Cancel).await;
        }));
    }
}
