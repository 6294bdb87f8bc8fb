//! Bodies of HTTP/2 responses.

use crate::net::{BodyStream, BoxError, InFlightRequest, connection::WriteTimeout};
use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Body as _, Frame, SizeHint},
};
use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

/// The last piece of an answer that is said to be the last, at most.
const FINAL_PIECE_BYTES_MAX: usize = 16 * 1024;

/// The body of an answer by HTTP/2: most often whole, in one piece, with trailers where the
/// protocol has some.
#[derive(Default)]
pub struct ResponseBody(BodyRemainder);

/// What has not been sent yet.
#[derive(Default)]
enum BodyRemainder {
    #[default]
    Nothing,
    Full(Bytes, Option<Box<HeaderMap>>),
    Trailers(Box<HeaderMap>),
    Stream(BodyStream),
    Watch(BodyStream),
}

impl ResponseBody {
    /// All of it.
    pub fn new(data: Bytes) -> Self {
        match data.is_empty() {
            true => Self::default(),
            false => Self(BodyRemainder::Full(data, None)),
        }
    }

    /// All of it, and what follows it.
    pub fn with_trailers(data: Bytes, trailers: HeaderMap) -> Self {
        Self(BodyRemainder::Full(data, Some(Box::new(trailers))))
    }

    pub(super) fn is_stream(&self) -> bool {
        matches!(self.0, BodyRemainder::Stream(_))
    }

    /// A stream of news, which lasts until its client leaves. Its connection is idle meanwhile, so
    /// a drain ends it.
    pub fn watch(stream: BodyStream) -> Self {
        Self(BodyRemainder::Watch(stream))
    }

    /// Written piece by piece.
    pub fn stream(stream: BodyStream) -> Self {
        Self(BodyRemainder::Stream(stream))
    }
}

impl<T: Into<Bytes>> From<T> for ResponseBody {
    fn from(data: T) -> Self {
        Self::new(data.into())
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BodyRemainder::Nothing => f.write_str("Body()"),
            BodyRemainder::Full(data, _) => write!(f, "Body({} bytes)", data.len()),
            BodyRemainder::Trailers(_) => f.write_str("Body(trailers)"),
            BodyRemainder::Stream(_) | BodyRemainder::Watch(_) => f.write_str("Body(stream)"),
        }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let rest = &mut self.get_mut().0;
        if let BodyRemainder::Stream(stream) | BodyRemainder::Watch(stream) = rest {
            return stream.as_mut().poll_frame(context);
        }
        Poll::Ready(match std::mem::take(rest) {
            BodyRemainder::Full(data, trailers) => {
                *rest = trailers.map(BodyRemainder::Trailers).unwrap_or_default();
                Some(Ok(Frame::data(data)))
            }
            BodyRemainder::Trailers(trailers) => Some(Ok(Frame::trailers(*trailers))),
            BodyRemainder::Nothing | BodyRemainder::Stream(_) | BodyRemainder::Watch(_) => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyRemainder::Nothing => true,
            BodyRemainder::Full(..) | BodyRemainder::Trailers(_) => false,
            BodyRemainder::Stream(stream) | BodyRemainder::Watch(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyRemainder::Nothing | BodyRemainder::Trailers(_) => SizeHint::with_exact(0),
            BodyRemainder::Full(data, None) => SizeHint::with_exact(data.len() as u64),
            // Readers of trailers need no `content-length`, which would be one more header of every
            // answer.
            BodyRemainder::Full(..) => SizeHint::default(),
            BodyRemainder::Stream(stream) | BodyRemainder::Watch(stream) => stream.size_hint(),
        }
    }
}

/// An answer's body. While it streams, its connection is busy, and closed when the peer does not
/// take it. A body that is whole has the time of an idle connection.
#[derive(Debug)]
pub(super) struct TrackedBody {
    body: Option<ResponseBody>,
    busy: Option<InFlightRequest>,
    stall: Option<WriteTimeout>,
    /// Whether a piece of it is on its way, so that its end is not told before that has been taken.
    /// A small one needs no frame of its own for the end: the piece waits here until the peer takes
    /// some of it.
    is_end_delayed: bool,
}

impl TrackedBody {
    pub(super) fn new(body: ResponseBody, busy: InFlightRequest) -> Self {
        let busy = Some(busy).filter(|_| body.is_stream() && !body.is_end_stream());
        // A peer may leave no room for a first byte, and then nobody asks for one.
        let stall =
            busy.as_ref().map(|busy| WriteTimeout::new(busy.life(), busy.life().front.limits.idle));
        Self { body: Some(body), busy, stall, is_end_delayed: false }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { body: inner, busy, stall, is_end_delayed } = &mut *self;
        let Some(body) = inner else {
            *stall = None;
            return Poll::Ready(None);
        };
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) else {
            // Nobody waits for the peer.
            *stall = None;
            return Poll::Pending;
        };
        let Some(life) = busy.as_ref().map(InFlightRequest::life) else {
            return Poll::Ready(frame);
        };
        let within = life.front.limits.idle;
        let is_small = |frame: &Frame<Bytes>| {
            frame.data_ref().is_some_and(|data| data.len() <= FINAL_PIECE_BYTES_MAX)
        };
        *is_end_delayed = match &frame {
            Some(Ok(frame)) => !is_small(frame) || !body.is_end_stream(),
            _ => false,
        };
        match (&frame, &mut *stall) {
            (Some(Ok(_)), Some(stall)) => stall.restart(within),
            (Some(Ok(_)), none) => *none = Some(WriteTimeout::new(life, within)),
            _ => (*inner, *stall) = (None, None),
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
