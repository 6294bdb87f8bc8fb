//! Bodies: a request's, read within bounds, and an answer's.

use super::life::Life;
use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::convert::Infallible;
use std::task::Context;
use std::{fmt, future::poll_fn, pin::Pin, rc::Rc, task::Poll, time::Duration};

/// An answer's body: most often whole, in one piece, with trailers where the protocol has some.
#[derive(Default)]
pub struct Body(Rest);

/// What has not been sent yet.
#[derive(Default)]
enum Rest {
    #[default]
    Nothing,
    Whole(Bytes, Option<Box<HeaderMap>>),
    Trailers(Box<HeaderMap>),
    Stream(Pin<Box<Stream>>),
}

type Stream = dyn hyper::body::Body<Data = Bytes, Error = Infallible> + Send;

impl Body {
    /// All of it.
    pub fn new(data: Bytes) -> Self {
        match data.is_empty() {
            true => Self::default(),
            false => Self(Rest::Whole(data, None)),
        }
    }

    /// All of it, and what follows it.
    pub fn with_trailers(data: Bytes, trailers: HeaderMap) -> Self {
        Self(Rest::Whole(data, Some(Box::new(trailers))))
    }

    /// Written piece by piece.
    pub fn stream<S>(stream: S) -> Self
    where
        S: hyper::body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        Self(Rest::Stream(Box::pin(stream)))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(data: T) -> Self {
        Self::new(data.into())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rest::Nothing => f.write_str("Body()"),
            Rest::Whole(data, _) => write!(f, "Body({} bytes)", data.len()),
            Rest::Trailers(_) => f.write_str("Body(trailers)"),
            Rest::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let rest = &mut self.get_mut().0;
        if let Rest::Stream(stream) = rest {
            return stream.as_mut().poll_frame(context);
        }
        Poll::Ready(match std::mem::take(rest) {
            Rest::Whole(data, trailers) => {
                *rest = trailers.map(Rest::Trailers).unwrap_or_default();
                Some(Ok(Frame::data(data)))
            }
            Rest::Trailers(trailers) => Some(Ok(Frame::trailers(*trailers))),
            Rest::Nothing | Rest::Stream(_) => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Rest::Nothing => true,
            Rest::Whole(..) | Rest::Trailers(_) => false,
            Rest::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Rest::Nothing | Rest::Trailers(_) => SizeHint::with_exact(0),
            Rest::Whole(data, None) => SizeHint::with_exact(data.len() as u64),
            // Whoever reads trailers does not need `content-length`, which would be a field of its own for every answer.
            Rest::Whole(..) => SizeHint::default(),
            Rest::Stream(stream) => stream.size_hint(),
        }
    }
}

/// A request's body, to be read by [`collect`].
#[derive(Debug)]
pub struct Unread {
    pub(super) incoming: Incoming,
    /// Of the connection that it comes from.
    pub(super) life: Rc<Life>,
}

impl Unread {
    /// The body as it comes, for whoever answers before all of it is there, and sees to it that this ends.
    pub fn into_incoming(self) -> Incoming {
        self.incoming
    }
}

/// Reads a body of at most `bytes_max` bytes. One that arrives in one piece is not copied, and the clock is looked at only
/// once there is something to wait for.
pub async fn collect(body: Unread, bytes_max: usize, within: Duration) -> Result<Bytes, BodyError> {
    let too_large = |bytes: u64| bytes > bytes_max as u64;
    let Unread { incoming: mut body, life } = body;
    // An announced length needs no reading to be refused.
    if too_large(body.size_hint().lower()) {
        return Err(BodyError::TooLarge);
    }
    let mut pieces = Pieces::default();
    let mut waiting = None;
    poll_fn(|context| {
        loop {
            match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    pieces.push(data);
                    if too_large(pieces.len() as u64) {
                        return Poll::Ready(Err(BodyError::TooLarge));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(BodyError::Broken)),
                Poll::Pending => {
                    let (deadline, _) = waiting.get_or_insert_with(|| {
                        (Box::pin(tokio::time::sleep(within)), Awaited::new(&life))
                    });
                    return deadline.as_mut().poll(context).map(|()| Err(BodyError::TooSlow));
                }
            }
        }
    })
    .await?;
    drop(waiting);
    Ok(pieces.join())
}

/// A request whose body is being waited for.
struct Awaited<'a>(&'a Life);

impl<'a> Awaited<'a> {
    fn new(life: &'a Life) -> Self {
        life.await_body();
        Self(life)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.end_body();
    }
}

/// The first piece as it came, or all of them together once there are two.
#[derive(Default)]
struct Pieces {
    first: Bytes,
    all: BytesMut,
}

impl Pieces {
    fn push(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if self.all.is_empty() {
            self.all.reserve(self.first.len() + data.len());
            self.all.extend_from_slice(&self.first);
        }
        self.all.extend_from_slice(&data);
    }

    fn len(&self) -> usize {
        self.all.len().max(self.first.len())
    }

    fn join(self) -> Bytes {
        match self.all.is_empty() {
            true => self.first,
            false => self.all.freeze(),
        }
    }
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// More bytes than are taken.
    TooLarge,
    /// Not there by the deadline.
    TooSlow,
    /// The peer broke off, or broke the protocol.
    Broken,
    /// The peer has gone, where that can be told from the former.
    Left,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is too large",
            Self::TooSlow => "the body took too long",
            Self::Broken | Self::Left => "the body broke off",
        })
    }
}

impl std::error::Error for BodyError {}
