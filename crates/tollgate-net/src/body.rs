//! Reads the body of a request, within bounds.

use super::{
    ClientConnection, CoarseTimer, connection::ConnectionState, http1::Http1Connection, http2,
};
use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming, SizeHint};
use std::task::{Context, Poll, ready};
use std::{borrow::Cow, future::poll_fn, pin::Pin, rc::Rc, time::Duration};

/// The error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The return type of a body's `poll_frame`.
pub type PolledFrame<E> = Poll<Option<Result<hyper::body::Frame<Bytes>, E>>>;

/// A request's body.
#[derive(Debug)]
pub enum RequestBody<'a> {
    /// The complete body, in the buffer that it was read into.
    Full(&'a [u8]),
    /// A body in transit.
    Stream(Upload),
}

impl<'a> RequestBody<'a> {
    /// Whether there is no body.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_empty(),
            Self::Stream(upload) => upload.is_end_stream(),
        }
    }

    /// Reads a body of at most `bytes_max` bytes. A complete body is not copied.
    ///
    /// # Errors
    ///
    /// When the body is larger, takes longer than `within`, or breaks off.
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

/// A request's body in transit. Reading fails if no data comes for
/// [`Limits::body`](crate::Limits::body).
#[derive(Debug)]
pub struct Upload {
    source: UploadSource,
    state: Rc<ConnectionState>,
    timer: CoarseTimer,
    is_waiting: bool,
}

#[derive(Debug)]
enum UploadSource {
    /// A connection, and the number of the body on this connection.
    Http1(Rc<Http1Connection>, u64),
    Http2(Incoming),
}

impl Upload {
    pub(super) fn http1(connection: Rc<Http1Connection>, state: &Rc<ConnectionState>) -> Self {
        let id = connection.body_id();
        Self::new(UploadSource::Http1(connection, id), state)
    }

    /// The body of an HTTP/2 request.
    pub fn http2(incoming: Incoming, caller: &ClientConnection) -> Self {
        Self::new(UploadSource::Http2(incoming), &caller.state)
    }

    fn new(source: UploadSource, state: &Rc<ConnectionState>) -> Self {
        let timer = CoarseTimer::new(state.timers.clone());
        Self { source, state: state.clone(), timer, is_waiting: false }
    }

    /// Reads the whole body; see [`RequestBody::collect`].
    pub async fn collect(mut self, bytes_max: usize, within: Duration) -> Result<Bytes, BodyError> {
        let read = self.read_all(bytes_max, within).await;
        if let (Err(BodyError::TooLarge), UploadSource::Http2(_)) = (&read, &self.source) {
            tokio::task::spawn_local(self.discard());
        }
        read
    }

    /// Discards the bytes that the peer still sends, for [`Limits::linger`](crate::Limits::linger).
    /// Some clients lose a complete answer if their stream is reset before they have sent the body.
    async fn discard(mut self) {
        self.set_waiting(false);
        let linger = self.state.listener.limits.linger;
        let reading = poll_fn(|context| {
            let UploadSource::Http2(incoming) = &mut self.source else { return Poll::Ready(()) };
            while let Some(Ok(_)) = ready!(Pin::new(&mut *incoming).poll_frame(context)) {}
            Poll::Ready(())
        });
        let _ = tokio::time::timeout(linger, reading).await;
    }

    async fn read_all(&mut self, bytes_max: usize, within: Duration) -> Result<Bytes, BodyError> {
        // A body with a declared length is refused without reading.
        if self.size_hint().lower() > bytes_max as u64 {
            return Err(BodyError::TooLarge);
        }
        let mut body = Bytes::new();
        let mut deadline = None;
        poll_fn(|context| {
            loop {
                match self.poll_data(context) {
                    Poll::Ready(Some(Ok(frame))) => {
                        let Ok(data) = frame.into_data() else { continue };
                        body = join(std::mem::take(&mut body), data);
                        if body.len() > bytes_max {
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
        Ok(body)
    }

    fn set_waiting(&mut self, is_waiting: bool) {
        match (self.is_waiting, is_waiting) {
            (false, true) => self.state.body_awaited(),
            (true, false) => {
                self.state.body_received();
                self.timer.reset();
            }
            _ => {}
        }
        self.is_waiting = is_waiting;
    }

    fn poll_data(&mut self, context: &mut Context<'_>) -> PolledFrame<BodyError> {
        let polled = match &mut self.source {
            UploadSource::Http1(connection, id) => connection.poll_frame(*id, context),
            UploadSource::Http2(incoming) => Pin::new(incoming)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|error| http2::body_error(&error)))),
        };
        self.set_waiting(polled.is_pending());
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && frame.data_ref().is_some_and(|data| !data.is_empty())
        {
            self.state.record_progress();
        }
        polled
    }
}

/// Appends `data` to `body`. The first piece is not copied.
fn join(body: Bytes, data: Bytes) -> Bytes {
    if body.is_empty() {
        return data;
    }
    let mut body = BytesMut::from(body);
    body.extend_from_slice(&data);
    body.freeze()
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

impl hyper::body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<BodyError> {
        if let Poll::Ready(frame) = self.poll_data(context) {
            return Poll::Ready(frame);
        }
        let within = self.state.listener.limits.body;
        ready!(self.timer.poll(context, within));
        Poll::Ready(Some(Err(BodyError::TooSlow)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            UploadSource::Http1(connection, id) => {
                *id == connection.body_id() && connection.is_over()
            }
            UploadSource::Http2(incoming) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            UploadSource::Http1(connection, id) if *id == connection.body_id() => {
                connection.size_hint()
            }
            UploadSource::Http1(..) => SizeHint::default(),
            UploadSource::Http2(incoming) => incoming.size_hint(),
        }
    }
}

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is larger than allowed.
    #[error("the body is too large")]
    TooLarge,
    /// The body missed its deadline.
    #[error("the body took too long")]
    TooSlow,
    /// The peer broke the protocol.
    #[error("the body broke off")]
    Broken,
    /// The peer closed the connection.
    #[error("the body broke off")]
    PeerClosed,
}

impl BodyError {
    /// The status of the answer.
    pub const fn status(self) -> hyper::StatusCode {
        match self {
            Self::TooLarge => hyper::StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => hyper::StatusCode::REQUEST_TIMEOUT,
            Self::Broken | Self::PeerClosed => hyper::StatusCode::BAD_REQUEST,
        }
    }
}
