//! Connection state: the stage of a connection, and the start of that stage.

use super::timer::CoarseTimers;
use crate::{Stats, accept::ListenerState};
use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};
use std::{fmt, future::poll_fn, rc::Rc, sync::Arc};

/// The event that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The first byte of the connection.
    New,
    /// The rest of a head.
    ReadingHead,
    /// A handler, which has its own deadlines.
    Busy,
    /// The next request.
    Idle,
    /// The peer's close, after ours.
    Lingering,
}

/// The loss that an eviction would cause, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EvictionClass {
    Idle,
    /// Requests with incomplete bodies, which are not decided yet.
    AwaitingBody,
    /// Part of an answer, not yet read by the peer.
    UnreadAnswer,
}

/// The close that a connection was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseRequest {
    None,
    /// Close when no request is in flight.
    Graceful,
    /// Close now: a deadline has passed, or the connection is evicted.
    Immediate,
}

/// The state of one connection, shared by its task and its worker on one thread.
pub(crate) struct ConnectionState {
    stage: Cell<Stage>,
    /// The tick at which the stage began.
    pub(super) since: Cell<u64>,
    pub(crate) timers: Rc<CoarseTimers>,
    in_flight: Cell<u32>,
    /// Requests in flight that wait for the rest of their body.
    awaiting_body: Cell<u32>,
    pub(super) write_blocked: Cell<bool>,
    close_request: Cell<CloseRequest>,
    waker: RefCell<Option<Waker>>,
    /// Whether several requests can be in flight, so that a read does not change the stage.
    multiplexed: Cell<bool>,
    /// Bytes read on a multiplexed connection since the last request or piece of a body, and the
    /// tick at which the count starts again.
    control_bytes: Cell<u64>,
    control_until: Cell<u64>,
    /// Whether an answer on this connection has had counter headers.
    pub(crate) sent_counters: Cell<bool>,
    pub(crate) listener: Arc<ListenerState>,
    /// Orders connections that became idle in the same tick.
    pub(crate) serial: u64,
}

impl ConnectionState {
    pub(crate) fn new(listener: Arc<ListenerState>, timers: Rc<CoarseTimers>, serial: u64) -> Self {
        Self {
            stage: Cell::new(Stage::New),
            since: Cell::new(timers.now.get()),
            timers,
            in_flight: Cell::new(0),
            awaiting_body: Cell::new(0),
            write_blocked: Cell::new(false),
            close_request: Cell::new(CloseRequest::None),
            waker: RefCell::new(None),
            multiplexed: Cell::new(false),
            control_bytes: Cell::new(0),
            control_until: Cell::new(0),
            sent_counters: Cell::new(false),
            listener,
            serial,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub(crate) fn close_request(&self) -> CloseRequest {
        self.close_request.get()
    }

    /// Enters a stage. `Lingering` is final, though streams may end after their connection.
    pub(crate) fn enter(&self, stage: Stage) {
        if self.stage.get() != Stage::Lingering {
            self.stage.set(stage);
            self.since.set(self.timers.now.get());
        }
    }

    /// Starts the deadline for the rest of a head, unless it runs already. Does nothing on a
    /// multiplexed connection.
    pub(crate) fn start_head_deadline(&self) {
        if matches!(self.stage.get(), Stage::New | Stage::Idle) && !self.multiplexed.get() {
            self.enter(Stage::ReadingHead);
        }
    }

    /// Counts bytes read on a multiplexed connection. Returns whether the peer floods it.
    pub(super) fn is_flooded_by(&self, bytes: usize) -> bool {
        if !self.multiplexed.get() {
            return false;
        }
        let limits = &self.listener.limits;
        if self.timers.now.get() >= self.control_until.get() {
            self.control_until.set(self.timers.deadline_tick(limits.idle));
            self.control_bytes.set(0);
        }
        self.control_bytes.update(|count| count.saturating_add(bytes as u64));
        self.control_bytes.get() > limits.control_bytes_max
    }

    /// Records a request, or a piece of a body in either direction.
    pub(crate) fn record_progress(&self) {
        self.control_bytes.set(0);
    }

    /// Allows several requests in flight. A slow head then has the deadline of an idle connection,
    /// and more bytes do not extend this deadline.
    pub(crate) fn set_multiplexed(&self) {
        self.multiplexed.set(true);
        self.enter(Stage::Idle);
    }

    pub(crate) fn body_awaited(&self) {
        self.awaiting_body.update(|count| count + 1);
    }

    pub(crate) fn body_received(&self) {
        self.awaiting_body.update(|count| count.saturating_sub(1));
    }

    pub(crate) fn is_write_blocked(&self) -> bool {
        self.write_blocked.get()
    }

    /// The loss that an eviction would cause; `None` if the connection must not be evicted.
    pub(crate) fn eviction_class(&self) -> Option<EvictionClass> {
        match self.stage.get() {
            Stage::Busy if self.awaiting_body.get() < self.in_flight.get() => None,
            _ if self.write_blocked.get() => Some(EvictionClass::UnreadAnswer),
            Stage::Busy => Some(EvictionClass::AwaitingBody),
            _ => Some(EvictionClass::Idle),
        }
    }

    /// Wakes the connection's task to close. An immediate close cannot be undone.
    pub(crate) fn request_close(&self, request: CloseRequest) {
        if self.close_request.get() != CloseRequest::Immediate {
            self.close_request.set(request);
        }
        self.wake();
    }

    /// Closes the connection at a deadline, and counts it.
    pub(crate) fn expire(&self) {
        if self.close_request() != CloseRequest::Immediate {
            Stats::add(&self.listener.stats.expired);
            self.request_close(CloseRequest::Immediate);
        }
    }

    /// Postpones an immediate close to leave time for a last answer.
    pub(crate) fn allow_final_response(&self) {
        self.close_request.set(CloseRequest::Graceful);
        self.enter(Stage::Lingering);
    }

    /// Polls `step` until it is ready; `None` if the connection must close first.
    pub(crate) async fn until_closed<T>(
        &self,
        mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        poll_fn(|context| self.poll_until_closed(context, &mut step)).await
    }

    /// One poll of [`until_closed`](Self::until_closed).
    pub(crate) fn poll_until_closed<T>(
        &self,
        context: &mut Context<'_>,
        step: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        let mut kept = self.waker.borrow_mut();
        if !kept.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *kept = Some(context.waker().clone());
        }
        drop(kept);
        match step(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.close_request() == CloseRequest::Immediate => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Wakes the connection's task.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl fmt::Debug for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionState").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// A request without a complete answer. Meanwhile its connection has no deadline and is not
/// evicted.
#[derive(Debug)]
pub struct InFlightRequest(Rc<ConnectionState>);

impl InFlightRequest {
    pub(crate) fn new(state: &Rc<ConnectionState>) -> Self {
        state.in_flight.update(|count| count + 1);
        state.enter(Stage::Busy);
        state.record_progress();
        Self(state.clone())
    }

    pub(crate) fn state(&self) -> &Rc<ConnectionState> {
        &self.0
    }
}

impl Drop for InFlightRequest {
    #[inline]
    fn drop(&mut self) {
        self.0.in_flight.update(|count| count.saturating_sub(1));
        if self.0.in_flight.get() == 0 {
            self.0.enter(Stage::Idle);
        }
        if std::thread::panicking() {
            Stats::add(&self.0.listener.stats.panics);
        }
    }
}
