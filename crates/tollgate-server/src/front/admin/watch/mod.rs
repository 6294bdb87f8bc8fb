//! Live views for operators: top keys, and server-sent events with decisions and counters.
//!
//! A stream never delays a decision. There are at most [`STREAMS_MAX`] streams, each with a bounded
//! queue. A reader that reads nothing for the idle time of a connection is disconnected and
//! counted.

mod live;
mod tail;
pub(super) mod top;

pub(super) use live::LiveFigures;

use super::{Admin, route::AdminRoute};
use crate::front::problem::Problem;
use crate::node::Node;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame};
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tollgate_net::{BodyStream, BoxError, HttpResponse, PolledFrame};

/// Limit of concurrent streams: half of the connections of the admin API.
const STREAMS_MAX: usize = 128;
/// The interval of comments on a stream without events, so that a dead connection is noticed.
const COMMENT_EVERY: Duration = Duration::from_secs(15);
/// A stream that was not polled for this long had a reader that did not read.
const STALLED_US: u64 = 2_000_000;

/// Counters of streams.
#[derive(Debug, Default)]
pub(crate) struct StreamCounters {
    open: AtomicUsize,
    stalled: AtomicU64,
}

impl StreamCounters {
    /// Open streams.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Relaxed) as u64
    }

    /// Streams closed because their readers did not read.
    pub(crate) fn stalled(&self) -> u64 {
        self.stalled.load(Relaxed)
    }
}

/// The source of a stream's events.
trait EventSource: Unpin + 'static {
    /// The interval at which events may occur.
    const EVERY: Duration;

    /// Appends the events since the last call.
    fn write(&mut self, out: &mut Vec<u8>);
}

/// The body of a stream.
struct EventStream<S> {
    source: S,
    ticks: Interval,
    silent_for: Duration,
    node: Arc<Node>,
    polled_us: u64,
}

impl Admin {
    /// The stream for a call; `None` if the call is no stream.
    pub(super) fn stream(
        self: &Arc<Self>,
        head: &Parts,
        peer: SocketAddr,
    ) -> Option<Result<BodyStream, Problem>> {
        let route = AdminRoute::find(&head.method, head.uri.path()).ok()?;
        if !matches!(route, AdminRoute::Tail | AdminRoute::Live) {
            return None;
        }
        Some(self.open_stream(&route, head, peer))
    }

    fn open_stream(
        self: &Arc<Self>,
        route: &AdminRoute,
        head: &Parts,
        peer: SocketAddr,
    ) -> Result<BodyStream, Problem> {
        self.check_host(head)?;
        self.authenticate(&head.headers, peer)?;
        if self.node.streams.open.load(Relaxed) >= STREAMS_MAX {
            return Err(too_many_streams());
        }
        match route {
            AdminRoute::Tail => Ok(self.event_stream(self.tail(head.uri.query())?)),
            _ => Ok(self.event_stream(live::LiveSource::new(self.clone()))),
        }
    }

    fn event_stream<S: EventSource>(&self, source: S) -> BodyStream {
        let mut ticks = interval(S::EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.node.streams.open.fetch_add(1, Relaxed);
        Box::pin(EventStream {
            source,
            ticks,
            // The first comment opens the stream.
            silent_for: COMMENT_EVERY,
            node: self.node.clone(),
            polled_us: self.node.clock.now_us(),
        })
    }
}

impl<S: EventSource> Body for EventStream<S> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame<BoxError> {
        self.polled_us = self.node.clock.now_us();
        let mut out = Vec::new();
        while out.is_empty() {
            ready!(self.ticks.poll_tick(context));
            self.source.write(&mut out);
            self.silent_for += S::EVERY;
            if out.is_empty() && self.silent_for >= COMMENT_EVERY {
                out.extend_from_slice(b":\n\n");
            }
        }
        self.silent_for = Duration::ZERO;
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }
}

impl<S> Drop for EventStream<S> {
    fn drop(&mut self) {
        self.node.streams.open.fetch_sub(1, Relaxed);
        if self.node.clock.now_us().saturating_sub(self.polled_us) > STALLED_US {
            self.node.streams.stalled.fetch_add(1, Relaxed);
            tracing::info!("closed a stream of the admin API: its client did not read");
        }
    }
}

/// Answers with a stream.
pub(super) fn start(stream: BodyStream, answer: &mut HttpResponse) {
    answer.header("content-type", "text/event-stream");
    answer.header("cache-control", "no-store");
    // Otherwise nginx would buffer events.
    answer.header("x-accel-buffering", "no");
    answer.stream = Some(stream);
}

/// Appends an event.
fn push_event(out: &mut Vec<u8>, name: &str, data: &impl serde::Serialize) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    // JSON without line breaks.
    out.extend_from_slice(&serde_json::to_vec(data).unwrap_or_default());
    out.extend_from_slice(b"\n\n");
}

fn too_many_streams() -> Problem {
    let detail = "too many readers of `/v1/tail` and `/v1/live`; close one, and try again";
    let retry_after = HeaderValue::from_static("5");
    Problem::unavailable(detail).with_header(RETRY_AFTER, retry_after)
}

/// The error for a stream without a connection.
pub(super) fn not_streamed() -> Problem {
    Problem::new(StatusCode::NOT_IMPLEMENTED, "this call answers with a stream, over a socket")
}
