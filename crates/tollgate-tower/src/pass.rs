//! An admitted request on its way, and its answer on the way back.

use crate::usage::{self, Usage};
use crate::{Engine, Shown};
use bytes::Bytes;
use http::Response;
use http::response::Parts;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tollgate::limit::{Cost, Limit, ResponseCost};
use tollgate::{Held, Source};

/// What an admitted request holds: slots, a place in a queue, estimates. Dropping it before it is answered, as when a client
/// leaves, frees slots and the place in a queue; what else was counted stays counted.
#[must_use = "dropping it ends the request"]
pub struct Pass<E: Engine> {
    rest: Holding<E>,
    shown: Shown,
    delay_us: u64,
    source: Source,
}

/// What is held until the answer has been sent. Dropping it lets go of all of it; [`Holding::body`] does so at the end of a body.
#[must_use = "dropping it ends the request"]
pub struct Holding<E: Engine> {
    engine: Arc<E>,
    held: Option<Held>,
    /// What the body may still say about costs, each for a place in what is held.
    costs: Vec<(usize, Usage)>,
}

impl<E: Engine> Pass<E> {
    pub(crate) fn new(
        engine: Arc<E>,
        held: Option<Held>,
        shown: Shown,
        delay_us: u64,
        source: Source,
    ) -> Self {
        Self { rest: Holding { engine, held, costs: Vec::new() }, shown, delay_us, source }
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
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Answers: with the fields, and with a body at whose end all that is held is let go.
    pub fn answer<B: Body>(self, response: Response<B>) -> Response<Passed<B, E>> {
        let (mut head, body) = response.into_parts();
        let rest = self.answer_head(&mut head);
        Response::from_parts(head, rest.body(body))
    }

    /// Answers with this head, and hands over what is held, for whatever follows it: a body, or a tunnel.
    pub fn answer_head(self, head: &mut Parts) -> Holding<E> {
        self.shown.merge(&mut head.headers);
        let headers = &head.headers;
        self.answered(head.status.as_u16(), |name| headers.get(name).map(|value| value.as_bytes()))
    }

    /// Answers with this status and the headers that `header` finds. Showing the quota is the
    /// caller's business.
    pub fn answered<'h>(
        self,
        status: u16,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Holding<E> {
        let mut rest = self.rest;
        rest.answered(status, header);
        rest
    }

    /// The answer undoes what its request counted for.
    pub fn refund(&mut self) {
        if let Some(held) = &mut self.rest.held {
            held.refund();
        }
    }

    /// Whether the cost is read from the body, so that it should not come compressed.
    pub fn reads_body(&self) -> bool {
        let is_read = |(_, limit): (usize, &Limit)| {
            matches!(&limit.cost, Cost::Estimate { response: ResponseCost::Json(_), .. })
        };
        self.rest.held.as_ref().is_some_and(|held| held.limits().any(is_read))
    }

    /// Whether the request can go on at once and its answer makes no difference any more, so that all there is to do is to show the fields.
    pub fn is_free(&self) -> bool {
        self.rest.held.is_none() && self.delay_us == 0
    }

    /// Lets the request go on where nobody here will see its answer: what it took stays taken, and slots are free when
    /// their time has passed.
    pub fn leave(mut self) {
        drop(self.rest.held.take());
    }
}

impl<E: Engine> Holding<E> {
    /// A body at whose end all is let go.
    pub fn body<B: Body>(mut self, body: B) -> Passed<B, E> {
        if body.is_end_stream() {
            self.end(true);
        }
        Passed { body, rest: self }
    }

    /// Whether nothing is held, so that the body makes no difference.
    pub fn is_free(&self) -> bool {
        self.held.is_none()
    }

    /// Ends the request with a body that came whole.
    pub fn finish(mut self, body: &[u8]) {
        self.costs.iter_mut().for_each(|(_, usage)| usage.read(body));
        self.end(true);
    }

    fn answered<'h>(&mut self, status: u16, header: impl Fn(&str) -> Option<&'h [u8]>) {
        let Some(held) = &mut self.held else { return };
        held.answered(status);
        let mut said = Vec::new();
        for (place, limit) in held.limits() {
            let Cost::Estimate { response, .. } = &limit.cost else { continue };
            match response {
                ResponseCost::Header(name) => {
                    let cost = header(name).and_then(usage::figure);
                    said.extend(cost.map(|cost| (place, cost)));
                }
                ResponseCost::Json(path) => {
                    self.costs.extend(Usage::new(path, &header).map(|usage| (place, usage)));
                }
            }
        }
        said.into_iter().for_each(|(place, cost)| held.settle(place, cost));
    }

    /// Ends what is held, with what the body said. One that broke off may have said too little, and then the estimate counts.
    fn end(&mut self, is_whole: bool) {
        let Some(mut held) = self.held.take() else { return };
        for (place, usage) in self.costs.drain(..) {
            let Some(cost) = usage.found() else { continue };
            let least = match held.limits().nth(place).map(|(_, limit)| &limit.cost) {
                Some(Cost::Estimate { estimate, .. }) if !is_whole => *estimate,
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
            self.engine.later(task);
        }
    }
}

impl<E: Engine> Drop for Holding<E> {
    fn drop(&mut self) {
        self.end(false);
    }
}

pin_project! {
    /// A body at whose end, or when it is dropped, what its request held is let go.
    pub struct Passed<B, E: Engine> {
        #[pin]
        body: B,
        rest: Holding<E>,
    }
}

impl<B: Body<Data = Bytes>, E: Engine> Body for Passed<B, E> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let polled = this.body.as_mut().poll_frame(context);
        if this.rest.held.is_some() {
            match &polled {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        this.rest.costs.iter_mut().for_each(|(_, usage)| usage.read(data));
                    }
                    // Before the last bytes are sent: whoever has them finds what they held free.
                    if this.body.is_end_stream() {
                        this.rest.end(true);
                    }
                }
                Poll::Ready(None) => this.rest.end(true),
                Poll::Ready(Some(Err(_))) => this.rest.end(false),
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

impl<E: Engine> std::fmt::Debug for Pass<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("delay_us", &self.delay_us).finish_non_exhaustive()
    }
}

impl<E: Engine> std::fmt::Debug for Holding<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holding").field("held", &self.held).finish_non_exhaustive()
    }
}
