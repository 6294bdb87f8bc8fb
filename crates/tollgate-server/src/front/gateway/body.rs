//! What a server is sent, and what a client is.

use super::{Shared, forward::remove_if, pool::Return};
use crate::{
    Node,
    net::{Alarm, BodyError, BoxError, Upload},
};
use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Body as _, Frame, Incoming, SizeHint},
    header,
};
use std::{
    cell::Cell,
    fmt,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tollgate_tower::{Passed, Shown};

/// A request's body on its way to a server.
#[derive(Debug, Default)]
pub(super) enum Outgoing {
    /// Nothing, so that it can be sent twice.
    #[default]
    Empty,
    /// What the client sends, and what says which fields of a request count.
    Upload(Box<Upload>, Rc<Sent>, Arc<Shared>),
}

/// How far a request's body has come.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) all: Cell<bool>,
    /// Why it came no farther.
    pub(super) fault: Cell<Option<BodyError>>,
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self::Upload(upload, sent, shared) = &mut *self else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut **upload).poll_frame(context));
        match &frame {
            None => sent.all.set(true),
            Some(Err(error)) => sent.fault.set(error.downcast_ref::<BodyError>().copied()),
            Some(Ok(_)) if upload.is_end_stream() => sent.all.set(true),
            Some(Ok(_)) => {}
        }
        let may_trail =
            |frame| only_what_may_trail(frame, |trailers| shared.settle_trailers(trailers));
        Poll::Ready(frame.map(|frame| frame.map(may_trail)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Upload(upload, ..) => upload.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Upload(upload, ..) => upload.size_hint(),
        }
    }
}

/// Trailers that say how to read a message, or who sent it, come too late to be believed.
fn only_what_may_trail(frame: Frame<Bytes>, settle: impl FnOnce(&mut HeaderMap)) -> Frame<Bytes> {
    match frame.into_trailers() {
        Err(frame) => frame,
        Ok(mut trailers) => {
            remove_untimely(&mut trailers);
            settle(&mut trailers);
            Frame::trailers(trailers)
        }
    }
}

/// What clients are told about their quota is told before the body, or not at all.
fn remove_quotas(trailers: &mut HeaderMap) {
    remove_if(trailers, |name| Shown::may_meet(name.as_str()));
}

fn remove_untimely(trailers: &mut HeaderMap) {
    let untimely = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::TRAILER,
        header::TE,
        header::UPGRADE,
        header::AUTHORIZATION,
        header::COOKIE,
        header::SET_COOKIE,
        header::CONTENT_TYPE,
        header::CONTENT_ENCODING,
        header::FORWARDED,
    ];
    for name in untimely {
        trailers.remove(name);
    }
}

/// An answer on its way to a client.
pub(crate) enum Answer {
    /// Ours, whole.
    Own(Option<Bytes>),
    /// A server's.
    Theirs(Box<Download>),
}

impl Answer {
    /// Nothing is not the same as no bytes: in HTTP/2 that would be a frame, and gRPC says all in the head or not at all.
    pub(super) fn own(bytes: impl Into<Bytes>) -> Self {
        Self::Own(Some(bytes.into()).filter(|bytes| !bytes.is_empty()))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own(_) => "Own",
            Self::Theirs(_) => "Theirs",
        })
    }
}

/// A server's answer. At its end the connection that it came by is free for another request.
pub(crate) struct Download {
    pub(super) incoming: Incoming,
    pub(super) alarm: Alarm,
    pub(super) idle: Duration,
    pub(super) connection: Option<Return>,
}

impl Download {
    fn end(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.give_back();
        }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if self.incoming.is_end_stream() {
            self.end();
        }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let download = match &mut *self {
            Self::Own(bytes) => {
                return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))));
            }
            Self::Theirs(download) => download,
        };
        match Pin::new(&mut download.incoming).poll_frame(context) {
            Poll::Ready(None) => {
                download.end();
                Poll::Ready(None)
            }
            Poll::Ready(Some(frame)) => {
                download.alarm.reset();
                Poll::Ready(Some(
                    frame
                        .map(|frame| only_what_may_trail(frame, remove_quotas))
                        .map_err(Into::into),
                ))
            }
            Poll::Pending => {
                ready!(download.alarm.poll(context, download.idle));
                Poll::Ready(Some(Err("the server stopped in the middle of its answer".into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(bytes) => bytes.is_none(),
            Self::Theirs(download) => download.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Theirs(download) => download.incoming.size_hint(),
        }
    }
}

/// An answer, with what its request holds until it ends.
pub(crate) enum Body {
    /// Decided: limits may be held.
    Held(Passed<Answer, Node>),
    /// Nothing is.
    Free(Answer),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Held(body) => Pin::new(body).poll_frame(context),
            Self::Free(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Held(body) => body.is_end_stream(),
            Self::Free(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Held(body) => body.size_hint(),
            Self::Free(body) => body.size_hint(),
        }
    }
}
