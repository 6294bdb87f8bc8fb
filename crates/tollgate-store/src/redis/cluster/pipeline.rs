//! Decides the requests of one caller as if one after the other.
//!
//! Requests with one [route](super::route) go into one call, in order. Calls on different routes
//! are independent, so they are sent at once, and a call that fails fails only its own requests. A
//! request over several routes may have to give back charges, so the next request on one of its
//! routes waits for it.

use super::Cluster;
use super::route::{CallSpan, ChargesByRoute, Route};
use crate::StoreError;
use crate::redis::batch::queue::{BatchRows, ReplyReceiver, RequestRows, failed_rows};
use crate::redis::batch::slot_returns::{UnreadReply, UnreadSlots};
use crate::redis::batch::{DecideRequest, DecideRequests};
use crate::redis::client::failure::Failure;
use crate::redis::client::{connection_task_ended, read_reply};
use smallvec::smallvec;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Requests that were sent, or are about to be.
#[derive(Debug, Default)]
struct RequestPipeline {
    /// Requests and their positions, by route.
    single_route: Vec<(Route, Vec<RequestPosition>, DecideRequests)>,
    /// Requests over several routes.
    multi_route: Vec<(Vec<Route>, RequestPosition, ReplyReceiver)>,
    /// The slots of the replies that are here.
    slots: UnreadSlots,
    /// The first error of a call.
    error: Option<StoreError>,
}

/// The index of a request among those of its caller, and the number of its charges.
#[derive(Clone, Copy, Debug)]
struct RequestPosition {
    index: usize,
    charges: usize,
}

impl Cluster {
    pub(crate) fn decide(
        self: &Arc<Self>,
        now_us: Option<u64>,
        deadline: Instant,
        requests: DecideRequests,
    ) -> impl Future<Output = Result<UnreadReply, StoreError>> {
        self.decide_by(CallSpan::Primary, now_us, deadline, requests)
    }

    /// Decides requests. Charges whose calls fail have failed rows; if all do, returns the error.
    pub(super) async fn decide_by(
        self: &Arc<Self>,
        span: CallSpan,
        now_us: Option<u64>,
        deadline: Instant,
        requests: DecideRequests,
    ) -> Result<UnreadReply, StoreError> {
        let map_read = timeout_at(deadline, self.until_map_read()).await;
        map_read.unwrap_or_else(|_| Err(Failure::timeout().error))?;
        let mut answered: Vec<Option<RequestRows>> = requests.iter().map(|_| None).collect();
        let (mut pipeline, mut routes) = (RequestPipeline::default(), self.routes(span));
        for (index, request) in requests.into_iter().enumerate() {
            let mut parts = routes.parts(&request);
            if pipeline.could_be_overtaken(&parts) {
                pipeline.send_and_wait(self, now_us, deadline, &mut answered).await;
                routes = self.routes(span);
                parts = routes.parts(&request);
            }
            let position = RequestPosition { index, charges: request.charges.len() };
            match &parts[..] {
                [] => answered[index] = Some((true, smallvec![])),
                [(route, _)] => pipeline.add(route, position, request),
                _ => {
                    let routes = parts.iter().map(|part| part.0.clone()).collect();
                    let reply = self.decide_in_parts(now_us, deadline, request, parts);
                    pipeline.multi_route.push((routes, position, reply));
                }
            }
        }
        pipeline.send_and_wait(self, now_us, deadline, &mut answered).await;
        let answered: Option<BatchRows> = answered.into_iter().collect();
        let answered = answered.ok_or_else(connection_task_ended)?;
        let is_failed = |(_, rows): &RequestRows| rows.iter().all(|row| row.failure().is_some());
        match pipeline.error.filter(|_| answered.iter().all(is_failed)) {
            Some(error) => Err(error),
            None => Ok(UnreadReply { rows: answered, slots: pipeline.slots }),
        }
    }
}

impl RequestPipeline {
    /// Whether a request with these parts could be decided before an earlier one.
    fn could_be_overtaken(&self, parts: &ChargesByRoute) -> bool {
        let meets = |route: &Route| parts.iter().any(|part| part.0 == *route);
        let split = self.multi_route.iter().any(|(routes, ..)| routes.iter().any(meets));
        split || (parts.len() > 1 && self.single_route.iter().any(|(route, ..)| meets(route)))
    }

    fn add(&mut self, route: &Route, position: RequestPosition, request: DecideRequest) {
        match self.single_route.iter_mut().find(|group| group.0 == *route) {
            Some((_, positions, requests)) => {
                positions.push(position);
                requests.push(request);
            }
            None => self.single_route.push((route.clone(), vec![position], smallvec![request])),
        }
    }

    /// Sends the remaining requests, and waits for all replies.
    async fn send_and_wait(
        &mut self,
        cluster: &Cluster,
        now_us: Option<u64>,
        deadline: Instant,
        answered: &mut [Option<RequestRows>],
    ) {
        let single_route: Vec<_> = self
            .single_route
            .drain(..)
            .map(|(route, positions, requests)| (positions, cluster.push(&route, now_us, requests)))
            .collect();
        for (positions, queued) in single_route {
            self.record(positions, read_reply(queued, deadline).await, answered);
        }
        for (_, position, reply) in std::mem::take(&mut self.multi_route) {
            // The task that merges the parts of a request keeps the deadline, and then still
            // answers with the parts that it has.
            let reply = reply.await.unwrap_or_else(|_| Err(connection_task_ended()));
            self.record(vec![position], reply, answered);
        }
    }

    fn record(
        &mut self,
        positions: Vec<RequestPosition>,
        reply: Result<UnreadReply, StoreError>,
        answered: &mut [Option<RequestRows>],
    ) {
        match reply {
            Ok(UnreadReply { rows, slots }) => {
                self.slots.append(slots);
                let rows = positions.iter().zip(rows);
                rows.for_each(|(position, rows)| answered[position.index] = Some(rows));
            }
            Err(error) => {
                for RequestPosition { index, charges } in positions {
                    answered[index] = Some(failed_rows(error.kind, charges));
                }
                self.error.get_or_insert(error);
            }
        }
    }
}
