//! Bodies on their way through.

use super::{BoxError, Busy};
use crate::net::{
    BodyError,
    alarm::{Alarm, Stall},
    life::Life,
};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::{
    future::poll_fn,
    io::{
        self,
        ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof},
    },
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

/// A request's body. It ends with an error when nothing more comes for [`Limits::body`](crate::net::Limits::body).
#[derive(Debug)]
pub struct Upload {
    incoming: Incoming,
    life: Rc<Life>,
    alarm: Alarm,
    waiting: bool,
}

impl Upload {
    pub(super) fn new(incoming: Incoming, life: Rc<Life>) -> Self {
        let alarm = Alarm::new(life.alarms.clone());
        Self { incoming, life, alarm, waiting: false }
    }

    /// Reads it to its end, for nobody. Whether there was one.
    pub async fn skip(mut self) -> bool {
        loop {
            match poll_fn(|context| Pin::new(&mut self).poll_frame(context)).await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return false,
                None => return true,
            }
        }
    }

    fn wait(&mut self, waiting: bool) {
        match (self.waiting, waiting) {
            (false, true) => self.life.await_body(),
            (true, false) => {
                self.life.end_body();
                self.alarm.reset();
            }
            _ => {}
        }
        self.waiting = waiting;
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.wait(false);
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.incoming).poll_frame(context) {
            Poll::Ready(frame) => {
                self.wait(false);
                Poll::Ready(frame.map(|frame| frame.map_err(|error| why(&error).into())))
            }
            Poll::Pending => {
                self.wait(true);
                let within = self.life.front.limits.body;
                ready!(self.alarm.poll(context, within));
                Poll::Ready(Some(Err(BodyError::TooSlow.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// Whether a peer broke off or has gone.
fn why(error: &hyper::Error) -> BodyError {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        let is_over = error.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
        });
        let is_reset = error
            .downcast_ref::<h2::Error>()
            .is_some_and(|error| error.is_remote() || error.is_io());
        if is_over || is_reset {
            return BodyError::Left;
        }
        cause = error.source();
    }
    BodyError::Broken
}

/// The last piece of an answer by HTTP/2 that is said to be the last, at most.
const LAST_BYTES: usize = 16 * 1024;

/// An answer's body: its connection is busy until it ends, and closed when the peer does not take it.
#[derive(Debug)]
pub(super) struct Alive<B> {
    body: Option<B>,
    busy: Busy,
    stall: Option<Stall>,
    /// Whether a piece of it is on its way, so that its end is not told before that has been taken. By HTTP/2 a small one needs no frame of its own for
    /// the end: the piece waits here until the peer takes some of it, and has the time of an idle connection for the rest.
    begun: bool,
}

impl<B: Body> Alive<B> {
    pub(super) fn new(body: B, busy: Busy) -> Self {
        // A peer of HTTP/2 may leave no room for a first byte, and then nobody asks for one.
        let waits = !body.is_end_stream();
        let stall = waits.then(|| Stall::new(&busy.0, busy.0.front.limits.idle));
        Self { body: Some(body), busy, stall, begun: false }
    }

    pub(super) fn empty(busy: Busy) -> Self {
        Self { body: None, busy, stall: None, begun: false }
    }
}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> Body for Alive<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { body: inner, busy, stall, begun } = &mut *self;
        let Some(body) = inner else {
            *stall = None;
            return Poll::Ready(None);
        };
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) else {
            // Nobody waits for the peer.
            *stall = None;
            return Poll::Pending;
        };
        let (life, within) = (&busy.0, busy.0.front.limits.idle);
        let is_small = |frame: &Frame<Bytes>| {
            life.is_shared() && frame.data_ref().is_some_and(|data| data.len() <= LAST_BYTES)
        };
        *begun = match &frame {
            Some(Ok(frame)) => !is_small(frame) || !body.is_end_stream(),
            _ => false,
        };
        match (&frame, &mut *stall) {
            (Some(Ok(_)), Some(stall)) => stall.again(within),
            (Some(Ok(_)), none) => *none = Some(Stall::new(life, within)),
            _ => (*inner, *stall) = (None, None),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        !self.begun && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}
