//! Bodies: a request's, read within bounds, and an answer's by HTTP/2.

use super::{
    BoxError, ClientConnection, CoarseTimer, handler::BodyStream, http1::Http1Connection,
    life::ConnectionState,
};
use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::borrow::Cow;
use std::io::{
    self,
    ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof},
};
use std::task::{Context, ready};
use std::{fmt, future::poll_fn, pin::Pin, rc::Rc, task::Poll, time::Duration};

/// A request's body.
#[derive(Debug)]
pub enum RequestBody<'a> {
    /// All of it, where it was read.
    Full(&'a [u8]),
    /// Still on its way.
    Stream(Upload),
}

impl<'a> RequestBody<'a> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Stream(upload) => upload.is_end_stream(),
        }
    }

    /// Reads a body of at most `bytes_max` bytes. One that is whole is not copied.
    ///
    /// # Errors
    ///
    /// When it is larger, takes longer than `within`, or breaks off.
    pub async fn collect(
        self,
        bytes_max: usize,
        within: Duration,
    ) -> Result<Cow<'a, [u8]>, BodyError> {
        match self {
            Self::Full(bytes) if bytes.len() > bytes_max => Err(BodyError::TooLarge),
            Self::Full(bytes) => Ok(bytes.into()),
            Self::Stream(upload) => {
                let collected = Box::pin(upload.collect(bytes_max, within)).await?;
                Ok(Vec::from(collected).into())
            }
        }
    }
}

/// A request's body on its way. It ends with an error when nothing more comes for
/// [`Limits::body`](crate::net::Limits::body).
#[derive(Debug)]
pub struct Upload {
    source: UploadSource,
    life: Rc<ConnectionState>,
    alarm: CoarseTimer,
    is_waiting: bool,
}

#[derive(Debug)]
enum UploadSource {
    /// A connection, and which of its bodies it is.
    Http1(Rc<Http1Connection>, u64),
    Http2(Incoming),
}

impl Upload {
    pub(super) fn http1(connection: Rc<Http1Connection>, life: &Rc<ConnectionState>) -> Self {
        let number = connection.body_id();
        Self::new(UploadSource::Http1(connection, number), life)
    }

    pub(crate) fn http2(incoming: Incoming, caller: &ClientConnection) -> Self {
        Self::new(UploadSource::Http2(incoming), &caller.life)
    }

    fn new(source: UploadSource, life: &Rc<ConnectionState>) -> Self {
        let alarm = CoarseTimer::new(life.alarms.clone());
        Self { source, life: life.clone(), alarm, is_waiting: false }
    }

    /// All of it, in one piece, within this time and no larger than that.
    ///
    /// # Errors
    ///
    /// When it is larger, takes longer, or breaks off.
    pub async fn collect(mut self, bytes_max: usize, within: Duration) -> Result<Bytes, BodyError> {
        let is_too_large = |bytes: u64| bytes > bytes_max as u64;
        // An announced length needs no reading to be refused.
        if is_too_large(self.size_hint().lower()) {
            return Err(BodyError::TooLarge);
        }
        let mut pieces = BodyCollector::default();
        let mut deadline = None;
        poll_fn(|context| {
            loop {
                match Pin::new(&mut self).poll_data(context) {
                    Poll::Ready(Some(Ok(frame))) => {
                        let Ok(data) = frame.into_data() else { continue };
                        pieces.push(data);
                        if is_too_large(pieces.len() as u64) {
                            return Poll::Ready(Err(BodyError::TooLarge));
                        }
                    }
                    Poll::Ready(None) => return Poll::Ready(Ok(())),
                    Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(BodyError::Broken)),
                    Poll::Pending => {
                        let deadline =
                            deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
                        return deadline.as_mut().poll(context).map(|()| Err(BodyError::TooSlow));
                    }
                }
            }
        })
        .await?;
        Ok(pieces.join())
    }

    fn set_waiting(&mut self, is_waiting: bool) {
        match (self.is_waiting, is_waiting) {
            (false, true) => self.life.body_awaited(),
            (true, false) => {
                self.life.body_received();
                self.alarm.reset();
            }
            _ => {}
        }
        self.is_waiting = is_waiting;
    }

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = match &mut self.source {
            UploadSource::Http1(connection, number) => connection.poll_frame(*number, context),
            UploadSource::Http2(incoming) => Pin::new(incoming)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|error| http2_body_error(&error)))),
        };
        self.set_waiting(polled.is_pending());
        polled
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

impl hyper::body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(frame) = self.poll_data(context) {
            return Poll::Ready(frame);
        }
        let within = self.life.front.limits.body;
        ready!(self.alarm.poll(context, within));
        Poll::Ready(Some(Err(BodyError::TooSlow)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            UploadSource::Http1(connection, number) => {
                *number == connection.body_id() && connection.is_over()
            }
            UploadSource::Http2(incoming) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            UploadSource::Http1(connection, number) if *number == connection.body_id() => {
                connection.size_hint()
            }
            UploadSource::Http1(..) => SizeHint::default(),
            UploadSource::Http2(incoming) => incoming.size_hint(),
        }
    }
}

/// Whether an HTTP/2 peer broke the protocol or has gone.
fn http2_body_error(error: &hyper::Error) -> BodyError {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        let is_over = error.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
        });
        let is_reset = error
            .downcast_ref::<h2::Error>()
            .is_some_and(|error| error.is_remote() || error.is_io());
        if is_over || is_reset {
            return BodyError::PeerClosed;
        }
        cause = error.source();
    }
    BodyError::Broken
}

/// The first piece as it came, or all of them together once there are two.
#[derive(Default)]
struct BodyCollector {
    first: Bytes,
    all: BytesMut,
}

impl BodyCollector {
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
    /// The peer broke the protocol.
    Broken,
    /// The peer has gone.
    PeerClosed,
}

impl BodyError {
    /// The status to answer with.
    pub(crate) const fn status(self) -> hyper::StatusCode {
        match self {
            Self::TooLarge => hyper::StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => hyper::StatusCode::REQUEST_TIMEOUT,
            Self::Broken | Self::PeerClosed => hyper::StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is too large",
            Self::TooSlow => "the body took too long",
            Self::Broken | Self::PeerClosed => "the body broke off",
        })
    }
}

impl std::error::Error for BodyError {}

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
