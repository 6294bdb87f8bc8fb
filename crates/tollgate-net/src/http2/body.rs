//! Bodies of HTTP/2 responses.

use crate::connection::WriteTimeout;
use crate::{BodyError, BodyStream, BoxError, InFlightRequest, PolledFrame};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body as _, Frame, SizeHint};
use std::io;
use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
use std::task::{Context, Poll};
use std::{error::Error, fmt, pin::Pin};

/// Limit of a last piece that ends its stream in the same frame.
const FINAL_PIECE_BYTES_MAX: usize = 16 * 1024;

/// The body of an HTTP/2 response: mostly complete, with trailers for gRPC.
#[derive(Default)]
pub struct ResponseBody {
    data: Option<Bytes>,
    trailers: Option<Box<HeaderMap>>,
    stream: Option<BodyStream>,
    is_watch: bool,
}

impl ResponseBody {
    /// A complete body.
    pub fn new(data: Bytes) -> Self {
        Self { data: Some(data).filter(|data| !data.is_empty()), ..Self::default() }
    }

    /// A complete body and its trailers.
    pub fn with_trailers(data: Bytes, trailers: HeaderMap) -> Self {
        Self { data: Some(data), trailers: Some(Box::new(trailers)), ..Self::default() }
    }

    /// A stream without an end. Its connection counts as idle, so a drain ends the stream.
    pub fn watch(stream: BodyStream) -> Self {
        Self { is_watch: true, ..Self::stream(stream) }
    }

    /// A body that is written piece by piece.
    pub fn stream(stream: BodyStream) -> Self {
        Self { stream: Some(stream), ..Self::default() }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("data", &self.data).finish_non_exhaustive()
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<BoxError> {
        if let Some(stream) = &mut self.stream {
            return stream.as_mut().poll_frame(context);
        }
        let frame = match self.data.take() {
            Some(data) => Some(Frame::data(data)),
            None => self.trailers.take().map(|trailers| Frame::trailers(*trailers)),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        match &self.stream {
            Some(stream) => stream.is_end_stream(),
            None => self.data.is_none() && self.trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.stream, &self.data, &self.trailers) {
            (Some(stream), ..) => stream.size_hint(),
            // With trailers, `content-length` is left out: clients do not need it.
            (None, Some(_), Some(_)) => SizeHint::default(),
            (None, data, _) => {
                SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64))
            }
        }
    }
}

/// The body of a response, tied to its connection. While it streams, the connection is busy, and is
/// closed if the peer stops reading. With a complete body, the connection has the deadline of an
/// idle one.
#[derive(Debug)]
pub(super) struct TrackedBody {
    body: Option<ResponseBody>,
    in_flight: Option<InFlightRequest>,
    write_timeout: Option<WriteTimeout>,
    /// Set while a piece is in transit: the end of the stream follows once the peer has taken the
    /// piece. A small last piece ends the stream itself.
    is_end_delayed: bool,
}

impl TrackedBody {
    pub(super) fn new(body: ResponseBody, in_flight: InFlightRequest) -> Self {
        let is_streaming = body.stream.is_some() && !body.is_watch && !body.is_end_stream();
        let in_flight = Some(in_flight).filter(|_| is_streaming);
        // A peer's flow control may block the first byte, and then this body is never polled.
        let write_timeout = in_flight.as_ref().map(|request| {
            WriteTimeout::new(request.state(), request.state().listener.limits.idle)
        });
        Self { body: Some(body), in_flight, write_timeout, is_end_delayed: false }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<BoxError> {
        let Self { body: inner, in_flight, write_timeout, is_end_delayed } = &mut *self;
        let Some(body) = inner else {
            *write_timeout = None;
            return Poll::Ready(None);
        };
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) else {
            // The peer waits for more data, so the write timeout stops.
            *write_timeout = None;
            return Poll::Pending;
        };
        let Some(state) = in_flight.as_ref().map(InFlightRequest::state) else {
            return Poll::Ready(frame);
        };
        let within = state.listener.limits.idle;
        if let Some(Ok(frame)) = &frame {
            state.record_progress();
            let is_small = frame.data_ref().is_some_and(|data| data.len() <= FINAL_PIECE_BYTES_MAX);
            *is_end_delayed = !is_small || !body.is_end_stream();
            match write_timeout {
                Some(timeout) => timeout.0.restart(within),
                None => *write_timeout = Some(WriteTimeout::new(state, within)),
            }
        } else {
            *is_end_delayed = false;
            (*inner, *write_timeout) = (None, None);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        !self.is_end_delayed && self.body.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), |body| body.size_hint())
    }
}

/// Whether the peer of a failed body violated the protocol or closed the connection.
pub(crate) fn body_error(error: &hyper::Error) -> BodyError {
    let has_gone = |error: &(dyn Error + 'static)| {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return error.is_remote() || error.is_io();
        }
        error.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
        })
    };
    if causes(error).any(has_gone) { BodyError::PeerClosed } else { BodyError::Broken }
}

/// An error of hyper, and its causes.
pub fn causes(error: &hyper::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source())
}
