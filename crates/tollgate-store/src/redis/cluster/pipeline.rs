//! Decides the requests of one caller as if one after the other.
//!
//! Requests with one [route](super::route) go into one call, in order. Calls on different routes
//! are independent, so they are sent at once. A request over several routes may have to give back
//! charges, so the next request on one of its routes waits for it.

use super::Cluster;
use super::route::{CallSpan, ChargesByRoute, Route};
use crate::StoreError;
use crate::redis::batch::queue::{BatchRows, ReplyReceiver, RequestRows};
use crate::redis::batch::{DecideRequest, DecideRequests};
use crate::redis::client::connection_task_ended;
use smallvec::smallvec;
use std::sync::Arc;

/// Requests that were sent, or are about to be.
#[derive(Debug, Default)]
struct RequestPipeline {
    /// Requests and their indexes, by route.
    single_route: Vec<(Route, Vec<usize>, DecideRequests)>,
    /// Requests over several routes.
    multi_route: Vec<(Vec<Route>, usize, ReplyReceiver)>,
}

impl Cluster {
    pub(crate) fn decide(
        self: &Arc<Self>,
        now_us: Option<u64>,
        requests: DecideRequests,
    ) -> impl Future<Output = Result<BatchRows, StoreError>> {
        self.decide_by(CallSpan::Primary, now_us, requests)
    }

    pub(super) async fn decide_by(
        self: &Arc<Self>,
        span: CallSpan,
        now_us: Option<u64>,
        requests: DecideRequests,
    ) -> Result<BatchRows, StoreError> {
        self.until_map_read().await?;
        let mut answered: Vec<Option<RequestRows>> = requests.iter().map(|_| None).collect();
        let (mut pipeline, mut routes) = (RequestPipeline::default(), self.routes(span));
        for (index, request) in requests.into_iter().enumerate() {
            let mut parts = routes.parts(&request);
            if pipeline.could_be_overtaken(&parts) {
                pipeline.send_and_wait(self, now_us, &mut answered).await?;
                routes = self.routes(span);
                parts = routes.parts(&request);
            }
            match &parts[..] {
                [] => answered[index] = Some((true, smallvec![])),
                [(route, _)] => pipeline.add(route, index, request),
                _ => {
                    let routes = parts.iter().map(|part| part.0.clone()).collect();
                    let reply = self.decide_in_parts(now_us, request, parts);
                    pipeline.multi_route.push((routes, index, reply));
                }
            }
        }
        pipeline.send_and_wait(self, now_us, &mut answered).await?;
        answered.into_iter().collect::<Option<_>>().ok_or_else(connection_task_ended)
    }
}

impl RequestPipeline {
    /// Whether a request with these parts could be decided before an earlier one.
    fn could_be_overtaken(&self, parts: &ChargesByRoute) -> bool {
        let meets = |route: &Route| parts.iter().any(|part| part.0 == *route);
        let split = self.multi_route.iter().any(|(routes, ..)| routes.iter().any(meets));
        split || (parts.len() > 1 && self.single_route.iter().any(|(route, ..)| meets(route)))
    }

    fn add(&mut self, route: &Route, index: usize, request: DecideRequest) {
        match self.single_route.iter_mut().find(|group| group.0 == *route) {
            Some((_, indexes, requests)) => {
                indexes.push(index);
                requests.push(request);
            }
            None => self.single_route.push((route.clone(), vec![index], smallvec![request])),
        }
    }

    /// Sends the remaining requests, and waits for all replies.
    async fn send_and_wait(
        &mut self,
        cluster: &Cluster,
        now_us: Option<u64>,
        answered: &mut [Option<RequestRows>],
    ) -> Result<(), StoreError> {
        let mut sent = Vec::new();
        for (route, indexes, requests) in self.single_route.drain(..) {
            sent.push((indexes, cluster.push(&route, now_us, requests)?));
        }
        sent.extend(self.multi_route.drain(..).map(|(_, index, reply)| (vec![index], reply)));
        for (indexes, reply) in sent {
            let rows = reply.await.unwrap_or_else(|_| Err(connection_task_ended()))?;
            indexes.into_iter().zip(rows).for_each(|(i, row)| answered[i] = Some(row));
        }
        Ok(())
    }
}
