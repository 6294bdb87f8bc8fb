//! Where one connection stands: what it waits for, and since when.

use super::timer::CoarseTimers;
use crate::net::{Limits, Stats};
use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// What a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The first byte of all.
    New,
    /// The rest of a head.
    ReadingHead,
    /// A handler, which has deadlines of its own.
    Busy,
    /// The next request.
    Idle,
    /// The peer's end, after ours.
    Lingering,
}

/// What would be lost with a connection, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EvictionClass {
    /// Nothing that the peer has asked for.
    Idle,
    /// Requests whose bodies are still on their way, so that nothing has been decided.
    AwaitingBody,
    /// An answer that the peer has not read all of.
    UnreadAnswer,
}

/// What a connection has been told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseRequest {
    /// Carry on.
    None,
    /// End when nothing is under way.
    Graceful,
    /// End now: a deadline has passed, or another needs the place.
    Immediate,
}

/// One connection, seen by its own task and by the worker that looks after it. Both are on one
/// thread.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    stage: Cell<Stage>,
    /// The tick at which the stage began.
    since: Cell<u64>,
    /// The worker's count of ticks, which saves a look at the clock for every change.
    now: Rc<Cell<u64>>,
    /// For what a handler waits for.
    pub(crate) alarms: Rc<CoarseTimers>,
    in_flight: Cell<u32>,
    /// How many of them wait for the rest of their body.
    awaiting_body: Cell<u32>,
    /// Whether part of an answer found no room, so that something is still to be written.
    write_blocked: Cell<bool>,
    close_request: Cell<CloseRequest>,
    waker: RefCell<Option<Waker>>,
    /// Whether requests share the connection, so that bytes say nothing about the stage.
    multiplexed: Cell<bool>,
    /// Whether an answer on it has told figures.
    pub(crate) sent_counters: Cell<bool>,
    pub(crate) front: Rc<FrontendContext>,
    /// Which connection of its worker it is: the order of those that became idle in one tick.
    pub(crate) serial: u64,
}

/// What holds for all connections of a front end, on one worker.
#[derive(Debug)]
pub(crate) struct FrontendContext {
    pub(crate) index: usize,
    pub(crate) limits: Limits,
    pub(crate) stats: Arc<Stats>,
}

impl ConnectionState {
    pub(crate) fn new(front: Rc<FrontendContext>, alarms: Rc<CoarseTimers>, serial: u64) -> Self {
        let now = alarms.now.clone();
        Self {
            stage: Cell::new(Stage::New),
            since: Cell::new(now.get()),
            now,
            alarms,
            in_flight: Cell::new(0),
            awaiting_body: Cell::new(0),
            write_blocked: Cell::new(false),
            close_request: Cell::new(CloseRequest::None),
            waker: RefCell::new(None),
            multiplexed: Cell::new(false),
            sent_counters: Cell::new(false),
            front,
            serial,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub(crate) fn since(&self) -> u64 {
        self.since.get()
    }

    pub(crate) fn close_request(&self) -> CloseRequest {
        self.close_request.get()
    }

    /// Bytes have come.
    pub(crate) fn bytes_received(&self) {
        if matches!(self.stage.get(), Stage::New | Stage::Idle) && !self.multiplexed.get() {
            self.enter(Stage::ReadingHead);
        }
    }

    /// From now on several requests can be under way. A slow head then has the time of an idle
    /// connection, which more bytes do not extend.
    pub(crate) fn set_multiplexed(&self) {
        self.multiplexed.set(true);
        self.enter(Stage::Idle);
    }

    /// Whether several requests can be under way.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.multiplexed.get()
    }

    /// A request's head is complete.
    pub(crate) fn request_started(&self) {
        self.in_flight.set(self.in_flight.get() + 1);
        self.enter(Stage::Busy);
    }

    /// A request has its answer.
    pub(crate) fn request_finished(&self) {
        let left = self.in_flight.get().saturating_sub(1);
        self.in_flight.set(left);
        if left == 0 {
            self.enter(Stage::Idle);
        }
    }

    /// A request waits for more of its body.
    pub(crate) fn body_awaited(&self) {
        self.awaiting_body.set(self.awaiting_body.get() + 1);
    }

    /// A request no longer waits for its body.
    pub(crate) fn body_received(&self) {
        self.awaiting_body.set(self.awaiting_body.get().saturating_sub(1));
    }

    /// Whether there was no room for all that is to be written.
    pub(crate) fn set_write_blocked(&self, stuck: bool) {
        self.write_blocked.set(stuck);
    }

    pub(crate) fn is_write_blocked(&self) -> bool {
        self.write_blocked.get()
    }

    /// Nothing more will be said.
    pub(crate) fn start_lingering(&self) {
        self.enter(Stage::Lingering);
    }

    /// The last stage is never left, though streams may still end after their connection.
    fn enter(&self, stage: Stage) {
        if self.stage.get() != Stage::Lingering {
            self.stage.set(stage);
            self.since.set(self.now.get());
        }
    }

    /// What would be lost with the connection; `None` when that must not be.
    pub(crate) fn eviction_class(&self) -> Option<EvictionClass> {
        match self.stage.get() {
            Stage::Busy if self.awaiting_body.get() < self.in_flight.get() => None,
            _ if self.write_blocked.get() => Some(EvictionClass::UnreadAnswer),
            Stage::Busy => Some(EvictionClass::AwaitingBody),
            Stage::New | Stage::ReadingHead | Stage::Idle | Stage::Lingering => {
                Some(EvictionClass::Idle)
            }
        }
    }

    /// Has the connection's task run and see its order. To close cannot be outbid.
    pub(crate) fn request_close(&self, order: CloseRequest) {
        if self.close_request.get() != CloseRequest::Immediate {
            self.close_request.set(order);
        }
        self.wake();
    }

    /// Puts the end off for as long as saying why may take.
    pub(crate) fn allow_final_response(&self) {
        self.close_request.set(CloseRequest::Graceful);
        self.start_lingering();
    }

    /// Polls `step` until it is ready or the order is to close, and lets
    /// [`request_close`](Self::tell) wake the task.
    pub(crate) async fn until_closed<T>(
        &self,
        mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        poll_fn(|context| self.poll_until_closed(context, &mut step)).await
    }

    /// One poll of it.
    pub(crate) fn poll_until_closed<T>(
        &self,
        context: &mut Context<'_>,
        step: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        self.register_waker(context.waker());
        match step(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.close_request.get() == CloseRequest::Immediate => {
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Nothing has to come first: a connection that says nothing has the time of an idle one.
    pub(crate) fn set_idle(&self) {
        self.enter(Stage::Idle);
    }

    /// Has the connection's task run.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn register_waker(&self, waker: &Waker) {
        let mut kept = self.waker.borrow_mut();
        match &*kept {
            Some(known) if known.will_wake(waker) => {}
            _ => *kept = Some(waker.clone()),
        }
    }
}

/// A request that has no whole answer yet: until it is dropped the connection has no deadline and
/// is not closed to make room.
#[derive(Debug)]
pub struct InFlightRequest(Rc<ConnectionState>);

impl InFlightRequest {
    pub(crate) fn new(life: &Rc<ConnectionState>) -> Self {
        life.request_started();
        Self(life.clone())
    }

    pub(crate) fn life(&self) -> &Rc<ConnectionState> {
        &self.0
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.request_finished();
        if std::thread::panicking() {
            Stats::add(&self.0.front.stats.panics);
        }
    }
}
