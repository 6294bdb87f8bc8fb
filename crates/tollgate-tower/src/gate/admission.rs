//! An admitted request on its way, and its answer on the way back.

use crate::usage::{self, UsageReader};
use crate::{Engine, RateLimitHeaders};
use bytes::Bytes;
use http::Response;
use http::response::Parts;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tollgate::limit::{CostRule, Limit, ResponseCost};
use tollgate::{InFlightCharges, Source};

/// What an admitted request holds: slots, a place in a queue, estimates. Dropping it before it is
/// answered, as when a client leaves, frees slots and the place in a queue; what else was counted
/// stays counted.
#[must_use = "dropping it ends the request"]
pub struct Admission<E: Engine> {
    guard: AdmissionGuard<E>,
    headers: RateLimitHeaders,
    delay_us: u64,
    source: Source,
}

/// What is held until the answer has been sent. Dropping it lets go of all of it;
/// [`AdmissionGuard::wrap_body`] does so at the end of a body.
#[must_use = "dropping it ends the request"]
pub struct AdmissionGuard<E: Engine> {
    engine: Arc<E>,
    in_flight: Option<InFlightCharges>,
    /// What the body may still say about costs, each for a place in what is held.
    costs: Vec<(usize, UsageReader)>,
}

impl<E: Engine> Admission<E> {
    pub(crate) fn new(
        engine: Arc<E>,
        held: Option<InFlightCharges>,
        shown: RateLimitHeaders,
        delay_us: u64,
        source: Source,
    ) -> Self {
        Self {
            guard: AdmissionGuard { engine, in_flight: held, costs: Vec::new() },
            headers: shown,
            delay_us,
            source,
        }
    }

    /// How long to hold the request back before it goes on; zero unless a limit shapes.
    pub fn delay(&self) -> Duration {
        Duration::from_micros(self.delay_us)
    }

    /// Where the decision came from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// What clients are told about their quota.
    pub fn headers(&self) -> &RateLimitHeaders {
        &self.headers
    }

    /// Answers: with the fields, and with a body at whose end all that is held is let go.
    pub fn respond<B: Body>(self, response: Response<B>) -> Response<AdmissionBody<B, E>> {
        let (mut head, body) = response.into_parts();
        let rest = self.respond_head(&mut head);
        Response::from_parts(head, rest.wrap_body(body))
    }

    /// Answers with this head, and hands over what is held, for whatever follows it: a body, or a
    /// tunnel.
    pub fn respond_head(self, head: &mut Parts) -> AdmissionGuard<E> {
        self.headers.merge(&mut head.headers);
        let headers = &head.headers;
        self.respond_status(head.status.as_u16(), |name| {
            headers.get(name).map(|value| value.as_bytes())
        })
    }

    /// Answers with this status and the headers that `header` finds. Showing the quota is the
    /// caller's business.
    pub fn respond_status<'h>(
        self,
        status: u16,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> AdmissionGuard<E> {
        let mut rest = self.guard;
        rest.record_response(status, header);
        rest
    }

    /// The answer undoes what its request counted for.
    pub fn refund(&mut self) {
        if let Some(held) = &mut self.guard.in_flight {
            held.refund();
        }
    }

    /// Whether the cost is read from the body, so that it should not come compressed.
    pub fn needs_body(&self) -> bool {
        let is_read = |(_, limit): (usize, &Limit)| {
            matches!(&limit.cost, CostRule::Estimate { response: ResponseCost::Json(_), .. })
        };
        self.guard.in_flight.as_ref().is_some_and(|held| held.limits().any(is_read))
    }

    /// Whether the request can go on at once and its answer makes no difference any more, so that
    /// all there is to do is to show the fields.
    pub fn holds_nothing(&self) -> bool {
        self.guard.in_flight.is_none() && self.delay_us == 0
    }

    /// Lets the request go on where nobody here will see its answer: what it took stays taken, and
    /// slots are free when their time has passed.
    pub fn detach(mut self) {
        drop(self.guard.in_flight.take());
    }
}

impl<E: Engine> AdmissionGuard<E> {
    /// A body at whose end all is let go.
    pub fn wrap_body<B: Body>(mut self, body: B) -> AdmissionBody<B, E> {
        if body.is_end_stream() {
            self.end(true);
        }
        AdmissionBody { body, guard: self }
    }

    /// Whether nothing is held, so that the body makes no difference.
    pub fn holds_nothing(&self) -> bool {
        self.in_flight.is_none()
    }

    /// Ends the request with a body that came whole.
    pub fn finish(mut self, body: &[u8]) {
        self.costs.iter_mut().for_each(|(_, usage)| usage.read(body));
        self.end(true);
    }

    fn record_response<'h>(&mut self, status: u16, header: impl Fn(&str) -> Option<&'h [u8]>) {
        let Some(held) = &mut self.in_flight else { return };
        held.on_response(status);
        let mut said = Vec::new();
        for (place, limit) in held.limits() {
            let CostRule::Estimate { response, .. } = &limit.cost else { continue };
            match response {
                ResponseCost::Header(name) => {
                    let cost = header(name).and_then(usage::parse_cost);
                    said.extend(cost.map(|cost| (place, cost)));
                }
                ResponseCost::Json(path) => {
                    self.costs.extend(UsageReader::new(path, &header).map(|usage| (place, usage)));
                }
            }
        }
        said.into_iter().for_each(|(place, cost)| held.settle(place, cost));
    }

    /// Ends what is held, with what the body said. One that broke off may have said too little, and
    /// then the estimate counts.
    fn end(&mut self, is_whole: bool) {
        let Some(mut held) = self.in_flight.take() else { return };
        for (place, usage) in self.costs.drain(..) {
            let Some(cost) = usage.found() else { continue };
            let least = match held.limits().nth(place).map(|(_, limit)| &limit.cost) {
                Some(CostRule::Estimate { estimate, .. }) if !is_whole => *estimate,
                _ => 0,
            };
            held.settle(place, cost.max(least));
        }
        let engine = self.engine.clone();
        let mut task = Box::pin(async move {
            let now_us = engine.now_us();
            engine.gate().finish(now_us, held).await;
        });
        // Memory has its answer at once, and then nobody has to be bothered.
        if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.engine.spawn(task);
        }
    }
}

impl<E: Engine> Drop for AdmissionGuard<E> {
    fn drop(&mut self) {
        self.end(false);
    }
}

pin_project! {
    /// A body at whose end, or when it is dropped, what its request held is let go.
    pub struct AdmissionBody<B, E: Engine> {
        #[pin]
        body: B,
        guard: AdmissionGuard<E>,
    }
}

impl<B: Body<Data = Bytes>, E: Engine> Body for AdmissionBody<B, E> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let polled = this.body.as_mut().poll_frame(context);
        if this.guard.in_flight.is_some() {
            match &polled {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        this.guard.costs.iter_mut().for_each(|(_, usage)| usage.read(data));
                    }
                    // Before the last bytes are sent: whoever has them finds what they held free.
                    if this.body.is_end_stream() {
                        this.guard.end(true);
                    }
                }
                Poll::Ready(None) => this.guard.end(true),
                Poll::Ready(Some(Err(_))) => this.guard.end(false),
                Poll::Pending => {}
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<E: Engine> std::fmt::Debug for Admission<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("delay_us", &self.delay_us).finish_non_exhaustive()
    }
}

impl<E: Engine> std::fmt::Debug for AdmissionGuard<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdmissionGuard").field("held", &self.in_flight).finish_non_exhaustive()
    }
}
