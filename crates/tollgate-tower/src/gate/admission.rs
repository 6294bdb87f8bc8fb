//! An admitted request: what it holds until its response has been sent.

use crate::usage::{self, UsageReader};
use crate::{Engine, RateLimitHeaders};
use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tollgate::engine::limit::{CostRule, Limit, ResponseCost};
use tollgate::engine::{
    BufferPool, InFlightCharges, QueuedEntry, Rules, ShedRefusal, ShedTicket, Source,
    UnfinishedCharges, UpstreamOutcome, Verdict,
};
use tollgate::store::Store;

/// The charges of an admitted request: slots, a place in a queue, estimates. Dropping it without a
/// response, as when a client leaves, frees slots and the place in a queue. Other charges stay.
#[must_use = "dropping it ends the request"]
pub struct Admission<E: Engine> {
    guard: AdmissionGuard<E>,
    headers: RateLimitHeaders,
    delay_us: u64,
    source: Source,
}

/// The charges that a request holds until its response has been sent. Dropping the guard ends them;
/// [`AdmissionGuard::wrap_body`] ends them at the end of a body.
#[must_use = "dropping it ends the request"]
pub struct AdmissionGuard<E: Engine> {
    held: Option<HeldCharges<E>>,
}

struct HeldCharges<E> {
    engine: Arc<E>,
    in_flight: InFlightCharges,
    costs: Option<Box<CostReaders>>,
}

/// Readers of costs in the body, each with the index of its charge.
type CostReaders = Vec<(usize, UsageReader)>;

thread_local! {
    static COSTS: BufferPool<CostReaders> = const { BufferPool::new() };
}

impl<E: Engine> Admission<E> {
    pub(crate) fn new(
        engine: &Arc<E>,
        in_flight: Option<InFlightCharges>,
        headers: RateLimitHeaders,
        verdict: &Verdict<'_>,
    ) -> Self {
        let guard = AdmissionGuard::new(engine, in_flight);
        Self { guard, headers, delay_us: verdict.delay_us, source: verdict.source }
    }

    /// How long to delay the request; zero unless a limit has a queue.
    pub fn delay(&self) -> Duration {
        Duration::from_micros(self.delay_us)
    }

    pub(crate) fn delay_us(&self) -> u64 {
        self.delay_us
    }

    /// The source of the decision.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The rate limit headers of the response.
    pub fn headers(&self) -> &RateLimitHeaders {
        &self.headers
    }

    /// Adds the rate limit headers, and wraps the body so that its end ends the charges.
    pub fn respond<B: Body>(
        mut self,
        mut response: Response<B>,
    ) -> Response<AdmissionBody<B, AdmissionGuard<E>>> {
        let guard = self.write_headers(&mut response);
        response.map(|body| guard.wrap_body(body))
    }

    /// Adds the rate limit headers, and returns the guard for the body.
    pub(crate) fn write_headers<B>(&mut self, response: &mut Response<B>) -> AdmissionGuard<E> {
        self.merge_headers(response.status(), response.headers_mut())
    }

    /// Adds the rate limit headers, and returns the guard for what follows: a body or a tunnel.
    pub fn respond_head(mut self, head: &mut Parts) -> AdmissionGuard<E> {
        self.merge_headers(head.status, &mut head.headers)
    }

    fn merge_headers(&mut self, status: StatusCode, headers: &mut HeaderMap) -> AdmissionGuard<E> {
        self.headers.merge(headers);
        let header = |name: &str| headers.get(name).map(|value| value.as_bytes());
        let guard = AdmissionGuard { held: self.guard.held.take() };
        guard.record_response(status, E::now_us, header)
    }

    /// Records this status at this time, and the headers that `header` finds. The caller writes the
    /// rate limit headers.
    #[inline]
    pub fn respond_status<'h>(
        self,
        status: StatusCode,
        now_us: u64,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> AdmissionGuard<E> {
        self.guard.record_response(status, |_| now_us, header)
    }

    /// Records how the upstream did, for the adaptive shedder. The status of a response says it
    /// too; the first record counts.
    pub fn record_upstream(&mut self, outcome: UpstreamOutcome) {
        if let Some((_, in_flight)) = self.guard.in_flight() {
            in_flight.record_upstream(outcome);
        }
    }

    /// Frees the slot of the adaptive shedder while the client still sends the body, and takes it
    /// again afterwards. Until then the upstream has no work with the request.
    pub fn set_waits_for_client(&mut self, waits_for_client: bool) {
        if let Some((engine, in_flight)) = self.guard.in_flight() {
            in_flight.set_waits_for_client(waits_for_client, || engine.now_us());
        }
    }

    /// Refunds the request.
    pub fn refund(&mut self) {
        if let Some((_, in_flight)) = self.guard.in_flight() {
            in_flight.refund();
        }
    }

    /// Whether a cost is read from the body, which must not be compressed then.
    pub fn needs_body(&self) -> bool {
        let is_read = |(_, limit): (usize, &Limit)| {
            matches!(&limit.cost, CostRule::Estimate { response: ResponseCost::Json(_), .. })
        };
        self.guard.held.as_ref().is_some_and(|held| held.in_flight.limits().any(is_read))
    }

    /// Whether nothing is held and there is no delay, so that only the headers remain to be
    /// written.
    pub fn holds_nothing(&self) -> bool {
        self.guard.holds_nothing() && self.delay_us == 0
    }

    /// Gives up the charges of a request whose response this process does not see. They stay, and
    /// slots are free when their `ttl` has passed.
    pub fn detach(mut self) {
        drop(self.guard.held.take());
    }
}

impl<E: Engine> AdmissionGuard<E> {
    pub(crate) fn new(engine: &Arc<E>, in_flight: Option<InFlightCharges>) -> Self {
        let hold = |in_flight| HeldCharges { engine: engine.clone(), in_flight, costs: None };
        Self { held: in_flight.map(hold) }
    }

    fn in_flight(&mut self) -> Option<(&E, &mut InFlightCharges)> {
        let HeldCharges { engine, in_flight, .. } = self.held.as_mut()?;
        Some((engine, in_flight))
    }

    pub(crate) fn take_queued(&mut self) -> Option<QueuedEntry> {
        self.in_flight()?.1.take_queued()
    }

    pub(crate) fn leave_queue(
        &mut self,
        rules: &Rules,
        verdict: &mut Verdict<'_>,
        waited: Result<ShedTicket, ShedRefusal>,
    ) {
        if let Some((engine, in_flight)) = self.in_flight() {
            engine.gate().leave_queue(rules, verdict, in_flight, waited);
        }
    }

    /// Hands the charges on.
    pub(crate) fn take(mut self) -> Option<InFlightCharges> {
        self.held.take().map(|held| held.in_flight)
    }

    /// Wraps a body so that its end ends the charges.
    pub fn wrap_body<B: Body>(self, body: B) -> AdmissionBody<B, Self> {
        AdmissionBody::new(body, self)
    }

    /// Records a response, and the costs that its headers have or its body will have.
    #[inline]
    fn record_response<'h>(
        mut self,
        status: StatusCode,
        clock: impl FnOnce(&E) -> u64,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Self {
        if let Some(HeldCharges { engine, in_flight, costs }) = &mut self.held {
            in_flight.on_response(status.as_u16(), || clock(engine));
            if in_flight.limits().next().is_some() {
                record_costs(in_flight, costs, header);
            }
        }
        self
    }

    /// Ends the charges after a complete body.
    #[inline]
    pub fn finish(mut self, body: &[u8]) {
        self.read_body(body);
        self.end(true);
    }

    #[inline(never)]
    fn end_held(&mut self, is_whole: bool) {
        let Some(HeldCharges { engine, mut in_flight, costs }) = self.held.take() else { return };
        if let Some(costs) = costs {
            settle_costs(&mut in_flight, costs, is_whole);
        }
        let unfinished = engine.gate().finish_now(|| engine.now_us(), in_flight);
        if let Some(unfinished) = unfinished {
            finish_later(engine, unfinished);
        }
    }
}

/// Reports ended charges to the store. Kept out of line: its future is large.
#[inline(never)]
fn finish_later<E: Engine>(
    engine: Arc<E>,
    unfinished: UnfinishedCharges<<E::Store as Store>::Undecided>,
) {
    let spawner = engine.clone();
    spawner.spawn(Box::pin(async move { engine.gate().finish_later(unfinished).await }));
}

#[inline(never)]
fn record_costs<'h>(
    in_flight: &mut InFlightCharges,
    costs: &mut Option<Box<CostReaders>>,
    header: impl Fn(&str) -> Option<&'h [u8]>,
) {
    let mut known = Vec::new();
    for (index, limit) in in_flight.limits() {
        let CostRule::Estimate { response, .. } = &limit.cost else { continue };
        match response {
            ResponseCost::Header(name) => {
                let cost = header(name).and_then(usage::parse_cost);
                known.extend(cost.map(|cost| (index, cost)));
            }
            ResponseCost::Json(path) => {
                let costs = costs.get_or_insert_with(|| COSTS.with(BufferPool::take));
                costs.extend(UsageReader::new(path, &header).map(|usage| (index, usage)));
            }
        }
    }
    known.into_iter().for_each(|(index, cost)| in_flight.settle(index, cost));
}

/// What a request holds until its response has been sent.
pub trait ResponseGuard {
    /// Whether nothing is held, so that the body makes no difference.
    fn holds_nothing(&self) -> bool;

    /// Sees a part of the body.
    fn read_body(&mut self, data: &[u8]);

    /// Ends what is held, after the whole body or a part of it.
    fn end(&mut self, is_whole: bool);
}

impl<G: ResponseGuard> ResponseGuard for Option<G> {
    fn holds_nothing(&self) -> bool {
        self.as_ref().is_none_or(G::holds_nothing)
    }

    fn read_body(&mut self, data: &[u8]) {
        if let Some(guard) = self {
            guard.read_body(data);
        }
    }

    fn end(&mut self, is_whole: bool) {
        if let Some(guard) = self {
            guard.end(is_whole);
        }
    }
}

impl<E: Engine> ResponseGuard for AdmissionGuard<E> {
    fn holds_nothing(&self) -> bool {
        self.held.is_none()
    }

    #[inline]
    fn read_body(&mut self, data: &[u8]) {
        if let Some(HeldCharges { costs: Some(costs), .. }) = &mut self.held {
            costs.iter_mut().for_each(|(_, usage)| usage.read(data));
        }
    }

    /// Ends the charges with the costs from the body. If the body was cut off, at least the
    /// estimate counts.
    #[inline]
    fn end(&mut self, is_whole: bool) {
        if self.held.is_some() {
            self.end_held(is_whole);
        }
    }
}

impl<E: Engine> Drop for AdmissionGuard<E> {
    #[inline]
    fn drop(&mut self) {
        self.end(false);
    }
}

/// Settles the costs that were found in the body.
fn settle_costs(in_flight: &mut InFlightCharges, mut costs: Box<CostReaders>, is_whole: bool) {
    for (index, usage) in costs.drain(..) {
        let Some(cost) = usage.found() else { continue };
        let least = match in_flight.limits().nth(index).map(|(_, limit)| &limit.cost) {
            Some(CostRule::Estimate { estimate, .. }) if !is_whole => *estimate,
            _ => 0,
        };
        in_flight.settle(index, cost.max(least));
    }
    // A thread that ends may have no pool any more.
    COSTS.try_with(|pool| pool.put(costs)).ok();
}

pin_project! {
    /// A body whose end, or drop, ends the charges of its request.
    pub struct AdmissionBody<B, G> {
        #[pin]
        body: B,
        guard: G,
    }
}

impl<B: Body, G: ResponseGuard> AdmissionBody<B, G> {
    pub(crate) fn new(body: B, mut guard: G) -> Self {
        if !guard.holds_nothing() && body.is_end_stream() {
            guard.end(true);
        }
        Self { body, guard }
    }
}

impl<B: Body<Data = Bytes>, G: ResponseGuard> Body for AdmissionBody<B, G> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let polled = this.body.as_mut().poll_frame(context);
        if !this.guard.holds_nothing() {
            match &polled {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        this.guard.read_body(data);
                    }
                    // Before the last bytes are sent, so that a client that has them finds its slot
                    // free.
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
        let in_flight = self.held.as_ref().map(|held| &held.in_flight);
        f.debug_struct("AdmissionGuard").field("in_flight", &in_flight).finish_non_exhaustive()
    }
}
