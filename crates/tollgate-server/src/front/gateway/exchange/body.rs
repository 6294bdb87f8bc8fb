//! Bodies on their way: what an upstream is sent, and what a client is.

use super::super::{
    GatewayState, forward,
    upstream::{Http2Stream, Pool, SelectedUpstream},
};
use crate::net::{
    BodyError, BodyWriter, BoxError, CoarseTimer, MessageBody, Upload, UpstreamStream,
};
use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Frame, Incoming, SizeHint},
};
use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

/// A request's body on its way to an upstream that speaks HTTP/1.1.
#[derive(Debug)]
pub(crate) struct UploadSender {
    upload: Upload,
    shared: Arc<GatewayState>,
    writer: BodyWriter,
    /// Whether the upstream takes no more.
    is_upstream_closed: bool,
}

impl UploadSender {
    pub(crate) fn new(upload: Upload, shared: Arc<GatewayState>, in_chunks: bool) -> Self {
        let writer = BodyWriter::new(Vec::new(), in_chunks);
        Self { upload, shared, writer, is_upstream_closed: false }
    }

    /// The body, of which nothing has been sent.
    pub(crate) fn into_upload(self) -> Upload {
        self.upload
    }

    /// Whether all of it has been sent.
    pub(crate) fn is_over(&self) -> bool {
        self.writer.is_over() && !self.is_upstream_closed
    }

    /// Sends what there is, for as long as the upstream takes it.
    ///
    /// # Errors
    ///
    /// When the client's body breaks off. An upstream that takes no more may still answer.
    pub(crate) fn poll_send(
        &mut self,
        stream: &mut UpstreamStream,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        let Self { upload, shared, writer, is_upstream_closed } = self;
        while !*is_upstream_closed && !writer.is_over() {
            let settle = |trailers: &mut HeaderMap| shared.remove_from_trailers(trailers);
            let is_pending = writer.fill(Pin::new(&mut *upload), settle, context)?;
            *is_upstream_closed = ready!(writer.poll_write(stream, context)).is_err();
            if is_pending && !*is_upstream_closed {
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A request's body on its way to an upstream that speaks HTTP/2.
#[derive(Debug, Default)]
pub(crate) enum Http2RequestBody {
    /// Nothing.
    #[default]
    Empty,
    /// All of it.
    Full(Option<Bytes>),
    /// What the client sends, and what says which headers of a request count.
    Upload(Box<Upload>, Rc<UploadProgress>, Arc<GatewayState>),
}

/// How far a request's body has come.
#[derive(Debug, Default)]
pub(crate) struct UploadProgress {
    pub(crate) is_complete: Cell<bool>,
    /// Why it came no farther.
    pub(crate) fault: Cell<Option<BodyError>>,
}

impl hyper::body::Body for Http2RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let (upload, sent, shared) = match &mut *self {
            Self::Empty => return Poll::Ready(None),
            Self::Full(bytes) => {
                return Poll::Ready(bytes.take().map(|data| Ok(Frame::data(data))));
            }
            Self::Upload(upload, sent, shared) => (upload, sent, shared),
        };
        let frame = ready!(Pin::new(&mut **upload).poll_frame(context));
        match &frame {
            None => sent.is_complete.set(true),
            Some(Err(error)) => sent.fault.set(Some(*error)),
            Some(Ok(_)) if upload.is_end_stream() => sent.is_complete.set(true),
            Some(Ok(_)) => {}
        }
        let settle = |frame| map_trailers(frame, |trailers| shared.remove_from_trailers(trailers));
        Poll::Ready(frame.map(|frame| frame.map(settle)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Full(bytes) => bytes.is_none(),
            Self::Upload(upload, ..) => upload.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Upload(upload, ..) => upload.size_hint(),
        }
    }
}

/// Trailers that say how to read a message, or who sent it, come too late to be believed.
fn map_trailers(frame: Frame<Bytes>, settle: impl FnOnce(&mut HeaderMap)) -> Frame<Bytes> {
    match frame.into_trailers() {
        Err(frame) => frame,
        Ok(mut trailers) => {
            settle(&mut trailers);
            Frame::trailers(trailers)
        }
    }
}

/// An upstream's answer on its way to a client. At its end the connection that it came by is free
/// for another request.
pub(crate) struct Download {
    source: DownloadSource,
    alarm: CoarseTimer,
    idle: Duration,
    flight: SelectedUpstream,
}

enum DownloadSource {
    Http1 {
        stream: UpstreamStream,
        body: Box<MessageBody>,
        /// The rest of the request's body.
        uploading: Option<Box<UploadSender>>,
        pool: Rc<Pool>,
        persists: bool,
    },
    Http2 {
        incoming: Incoming,
        /// Held for as long as the answer comes.
        _stream: Http2Stream,
    },
    Over,
}

impl Download {
    pub(crate) fn http1(
        (stream, body, uploading, persists): (
            UpstreamStream,
            MessageBody,
            Option<UploadSender>,
            bool,
        ),
        pool: Rc<Pool>,
        flight: SelectedUpstream,
        alarm: CoarseTimer,
        idle: Duration,
    ) -> Self {
        let uploading = uploading.filter(|uploading| !uploading.is_over()).map(Box::new);
        let body = Box::new(body);
        let source = DownloadSource::Http1 { stream, body, uploading, pool, persists };
        Self { source, alarm, idle, flight }
    }

    pub(crate) fn http2(
        incoming: Incoming,
        stream: Http2Stream,
        flight: SelectedUpstream,
        alarm: CoarseTimer,
        idle: Duration,
    ) -> Self {
        let source = DownloadSource::Http2 { incoming, _stream: stream };
        Self { source, alarm, idle, flight }
    }

    /// The answer has ended.
    fn end(&mut self) {
        let source = std::mem::replace(&mut self.source, DownloadSource::Over);
        if let DownloadSource::Http1 { stream, uploading: None, pool, persists: true, .. } = source
        {
            pool.put(self.flight.upstreams.generation, self.flight.server(), stream);
        }
    }
}

impl hyper::body::Body for Download {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = match &mut self.source {
            DownloadSource::Http1 { stream, body, uploading, .. } => {
                if let Some(upload) = uploading
                    && let Poll::Ready(sent) = upload.poll_send(stream, context)
                {
                    let is_over = upload.is_over();
                    sent?;
                    if is_over {
                        *uploading = None;
                    }
                }
                body.poll_frame(stream, context)
                    .map(|frame| frame.map(|frame| frame.map_err(BoxError::from)))
            }
            DownloadSource::Http2 { incoming, .. } => Pin::new(incoming)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(BoxError::from))),
            DownloadSource::Over => return Poll::Ready(None),
        };
        let Poll::Ready(frame) = polled else {
            let idle = self.idle;
            ready!(self.alarm.poll(context, idle));
            let stopped = "the server stopped in the middle of its answer";
            return Poll::Ready(Some(Err(io::Error::other(stopped).into())));
        };
        self.alarm.reset();
        match &frame {
            Some(Err(_)) => self.source = DownloadSource::Over,
            Some(Ok(_)) if !self.is_end_stream() => {}
            Some(Ok(_)) | None => self.end(),
        }
        let settle = |frame| map_trailers(frame, forward::remove_from_answer_trailers);
        Poll::Ready(frame.map(|frame| frame.map(settle)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            DownloadSource::Http1 { body, .. } => body.is_over(),
            DownloadSource::Http2 { incoming, .. } => incoming.is_end_stream(),
            DownloadSource::Over => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            DownloadSource::Http1 { body, .. } => body.size_hint(),
            DownloadSource::Http2 { incoming, .. } => incoming.size_hint(),
            DownloadSource::Over => SizeHint::with_exact(0),
        }
    }
}
