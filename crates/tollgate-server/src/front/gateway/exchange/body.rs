//! Bodies in transit: a request's to its upstream, and a response's to its client.

use super::super::upstream::{Http2Stream, Pool, SelectedUpstream};
use super::super::{GatewayState, forward};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::{future::poll_fn, io, rc::Rc, sync::Arc, time::Duration};
use tollgate::store::ProcessClock;
use tollgate_net::{
    BodyError, BodyWriter, BoxError, CoarseTimer, MessageBody, PolledFrame, Upload, UpstreamStream,
};

/// A request's body on its way to an HTTP/1.1 upstream.
#[derive(Debug)]
pub(super) struct UploadSender {
    pub(super) upload: Upload,
    shared: Arc<GatewayState>,
    writer: BodyWriter,
    is_upstream_closed: bool,
    /// Whether all received data is sent.
    waits_for_client: bool,
}

impl UploadSender {
    pub(super) fn new(upload: Upload, shared: Arc<GatewayState>, in_chunks: bool) -> Self {
        let writer = BodyWriter::new(Vec::new(), in_chunks);
        Self { upload, shared, writer, is_upstream_closed: false, waits_for_client: false }
    }

    /// Whether the whole body was sent.
    pub(super) fn is_over(&self) -> bool {
        self.writer.is_over() && !self.is_upstream_closed
    }

    /// Sends the received data, and records the progress. Fails with the client's body; a closed
    /// upstream may still respond.
    pub(super) fn poll_progress(
        &mut self,
        stream: &mut UpstreamStream,
        progress: &UploadProgress,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        let polled = self.poll_send(stream, context);
        progress.is_complete.set(polled.is_ready());
        progress.waits_for_client.set(polled.is_pending() && self.waits_for_client);
        polled
    }

    fn poll_send(
        &mut self,
        stream: &mut UpstreamStream,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        let Self { upload, shared, writer, is_upstream_closed, waits_for_client } = self;
        *waits_for_client = false;
        while !*is_upstream_closed && !writer.is_over() {
            let edit = |trailers: &mut HeaderMap| forward::remove_from_trailers(trailers, shared);
            let is_pending = writer.fill(Pin::new(&mut *upload), edit, context)?;
            *is_upstream_closed = ready!(writer.poll_write(stream, context)).is_err();
            if is_pending && !*is_upstream_closed {
                *waits_for_client = true;
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A request's body on its way to an HTTP/2 upstream.
#[derive(Debug)]
pub(crate) enum Http2RequestBody {
    Full(Option<Bytes>),
    Upload(Box<Upload>, Rc<UploadProgress>, Arc<GatewayState>),
}

/// The progress of an upload.
#[derive(Debug, Default)]
pub(crate) struct UploadProgress {
    pub(super) is_complete: Cell<bool>,
    /// Whether the upstream has all data that the client has sent so far.
    pub(super) waits_for_client: Cell<bool>,
    pub(super) error: Cell<Option<BodyError>>,
    /// The task that waits for the response, if another task sends the body.
    waker: RefCell<Option<Waker>>,
}

impl UploadProgress {
    pub(super) fn new(is_complete: bool) -> Self {
        Self { is_complete: Cell::new(is_complete), ..Self::default() }
    }

    fn set_waiting(&self, waits: bool) {
        if self.waits_for_client.replace(waits) != waits
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }
}

/// Waits for a response. While the upstream waits for the client's body, `on_wait` gets `true`.
pub(super) async fn observe_upload<T>(
    response: impl Future<Output = T>,
    progress: &UploadProgress,
    mut on_wait: impl FnMut(bool),
) -> T {
    let (mut response, mut waits) = (pin!(response), false);
    poll_fn(|context| {
        let polled = response.as_mut().poll(context);
        let now_waits = polled.is_pending() && progress.waits_for_client.get();
        if now_waits != waits {
            waits = now_waits;
            on_wait(waits);
        }
        if polled.is_pending() && !progress.is_complete.get() {
            progress.waker.replace(Some(context.waker().clone()));
        }
        polled
    })
    .await
}

impl Body for Http2RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<BodyError> {
        let (upload, progress, shared) = match &mut *self {
            Self::Full(bytes) => {
                return Poll::Ready(bytes.take().map(|data| Ok(Frame::data(data))));
            }
            Self::Upload(upload, progress, shared) => (upload, progress, shared),
        };
        let polled = Pin::new(&mut **upload).poll_frame(context);
        progress.set_waiting(polled.is_pending());
        let frame = ready!(polled);
        match &frame {
            Some(Err(error)) => progress.error.set(Some(*error)),
            Some(Ok(_)) if !upload.is_end_stream() => {}
            Some(Ok(_)) | None => progress.is_complete.set(true),
        }
        let edit = |frame| {
            edit_trailers(frame, |trailers| forward::remove_from_trailers(trailers, shared))
        };
        Poll::Ready(frame.map(|frame| frame.map(edit)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_none(),
            Self::Upload(upload, ..) => upload.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Self::Full(None) => SizeHint::with_exact(0),
            Self::Upload(upload, ..) => upload.size_hint(),
        }
    }
}

fn edit_trailers(frame: Frame<Bytes>, edit: impl FnOnce(&mut HeaderMap)) -> Frame<Bytes> {
    match frame.into_trailers() {
        Err(frame) => frame,
        Ok(mut trailers) => {
            edit(&mut trailers);
            Frame::trailers(trailers)
        }
    }
}

/// A response's body on its way to a client. At its end, the connection returns to the pool.
pub(super) struct Download {
    pub(super) source: DownloadSource,
    pub(super) timer: CoarseTimer,
    /// The time that the upstream may be silent.
    pub(super) idle: Duration,
    pub(super) selected: SelectedUpstream,
}

pub(super) enum DownloadSource {
    Http1 {
        stream: UpstreamStream,
        body: Box<MessageBody>,
        /// The rest of the request's body.
        upload: Option<Box<UploadSender>>,
        pool: Rc<Pool>,
        persists: bool,
    },
    Http2 {
        incoming: Incoming,
        _stream: Http2Stream,
    },
    Over,
}

impl Download {
    fn end(&mut self) {
        let source = std::mem::replace(&mut self.source, DownloadSource::Over);
        if let DownloadSource::Http1 { stream, upload: None, pool, persists: true, .. } = source {
            pool.put(&self.selected, stream, ProcessClock.now_us());
        }
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<BoxError> {
        let polled = match &mut self.source {
            DownloadSource::Http1 { stream, body, upload, .. } => {
                if let Some(sender) = upload
                    && let Poll::Ready(sent) = sender.poll_send(stream, context)
                {
                    sent?;
                    if sender.is_over() {
                        *upload = None;
                    }
                }
                body.poll_frame(stream, context).map_err(BoxError::from)
            }
            DownloadSource::Http2 { incoming, .. } => {
                Pin::new(incoming).poll_frame(context).map_err(BoxError::from)
            }
            DownloadSource::Over => return Poll::Ready(None),
        };
        let Poll::Ready(frame) = polled else {
            let idle = self.idle;
            ready!(self.timer.poll(context, idle));
            let stopped = "the upstream stopped in the middle of its response";
            return Poll::Ready(Some(Err(io::Error::other(stopped).into())));
        };
        self.timer.reset();
        match &frame {
            Some(Err(_)) => self.source = DownloadSource::Over,
            Some(Ok(_)) if !self.is_end_stream() => {}
            Some(Ok(_)) | None => self.end(),
        }
        let edit = |frame| edit_trailers(frame, forward::remove_from_answer_trailers);
        Poll::Ready(frame.map(|frame| frame.map(edit)))
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
