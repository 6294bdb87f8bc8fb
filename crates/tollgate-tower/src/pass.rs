//! An admitted request on its way, and its answer on the way back.

use crate::{Engine, Shown};
use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tollgate::{Held, Source};

/// What an admitted request holds: slots, a place in a queue, estimates. Dropping it before it is answered, as when a client
/// leaves, frees slots and the place in a queue; what else was counted stays counted.
#[must_use = "dropping it ends the request"]
pub struct Pass<E: Engine> {
    rest: Rest<E>,
    shown: Shown,
    delay_us: u64,
    source: Source,
}

/// What is left to do when a request has been answered.
struct Rest<E: Engine> {
    engine: Arc<E>,
    held: Option<Held>,
}

impl<E: Engine> Pass<E> {
    pub(crate) fn new(
        engine: Arc<E>,
        held: Option<Held>,
        shown: Shown,
        delay_us: u64,
        source: Source,
    ) -> Self {
        Self { rest: Rest { engine, held }, shown, delay_us, source }
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
        let Self { mut rest, shown, .. } = self;
        let (mut head, body) = response.into_parts();
        shown.merge(&mut head.headers);
        if let Some(held) = &mut rest.held {
            held.answered(head.status.as_u16());
        }
        Response::from_parts(head, Passed { body, rest })
    }

    /// Lets the request go on where nobody here will see its answer: what it took stays taken, and slots are free when
    /// their time has passed.
    pub fn leave(mut self) {
        drop(self.rest.held.take());
    }
}

impl<E: Engine> Drop for Rest<E> {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
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

pin_project! {
    /// A body at whose end, or when it is dropped, what its request held is let go.
    pub struct Passed<B, E: Engine> {
        #[pin]
        body: B,
        rest: Rest<E>,
    }
}

impl<B: Body, E: Engine> Body for Passed<B, E> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.project().body.poll_frame(context)
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
