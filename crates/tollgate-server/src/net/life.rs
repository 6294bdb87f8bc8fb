//! Where one connection stands: what it waits for, and since when.

use super::{Limits, Stats, alarm::Alarms};
use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// What a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The first byte of all.
    New,
    /// The rest of a head.
    Head,
    /// A handler, which has deadlines of its own.
    Busy,
    /// The next request.
    Idle,
    /// The peer's end, after ours.
    Last,
}

/// What would be lost with a connection, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    /// Nothing that the peer has asked for.
    Nothing,
    /// Requests whose bodies are still on their way, so that nothing has been decided.
    Body,
    /// An answer that the peer has not read all of.
    Answer,
}

/// What a connection has been told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Carry on.
    Serve,
    /// End when nothing is under way.
    Finish,
    /// End now: a deadline has passed, or another needs the place.
    Close,
}

/// One connection, seen by its own task and by the worker that looks after it. Both are on one thread.
#[derive(Debug)]
pub(super) struct Life {
    stage: Cell<Stage>,
    /// The tick at which the stage began.
    since: Cell<u64>,
    /// The worker's count of ticks, which saves a look at the clock for every change.
    now: Rc<Cell<u64>>,
    /// For what a handler waits for.
    pub(super) alarms: Rc<Alarms>,
    in_flight: Cell<u32>,
    /// How many of them wait for the rest of their body.
    bodies: Cell<u32>,
    /// Whether part of an answer found no room, so that something is still to be written.
    stuck: Cell<bool>,
    order: Cell<Order>,
    waker: RefCell<Option<Waker>>,
    /// Whether requests share the connection, so that bytes say nothing about the stage.
    shared: Cell<bool>,
    /// Whether an answer on it has told figures.
    pub(super) told: Cell<bool>,
    pub(super) front: Rc<Terms>,
    /// Which connection of its worker it is: the order of those that became idle in one tick.
    pub(super) serial: u64,
}

/// What holds for all connections of a front end, on one worker.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) index: usize,
    pub(super) limits: Limits,
    pub(super) stats: Arc<Stats>,
}

impl Life {
    pub(super) fn new(front: Rc<Terms>, alarms: Rc<Alarms>, serial: u64) -> Self {
        let now = alarms.now.clone();
        Self {
            stage: Cell::new(Stage::New),
            since: Cell::new(now.get()),
            now,
            alarms,
            in_flight: Cell::new(0),
            bodies: Cell::new(0),
            stuck: Cell::new(false),
            order: Cell::new(Order::Serve),
            waker: RefCell::new(None),
            shared: Cell::new(false),
            told: Cell::new(false),
            front,
            serial,
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub(super) fn since(&self) -> u64 {
        self.since.get()
    }

    pub(super) fn order(&self) -> Order {
        self.order.get()
    }

    /// Bytes have come.
    pub(super) fn received(&self) {
        if matches!(self.stage.get(), Stage::New | Stage::Idle) && !self.shared.get() {
            self.enter(Stage::Head);
        }
    }

    /// From now on several requests can be under way. A slow head then has the time of an idle connection, which more
    /// bytes do not extend.
    pub(super) fn share(&self) {
        self.shared.set(true);
        self.enter(Stage::Idle);
    }

    /// Whether several requests can be under way.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.get()
    }

    /// A request's head is complete.
    pub(super) fn begin(&self) {
        self.in_flight.set(self.in_flight.get() + 1);
        self.enter(Stage::Busy);
    }

    /// A request has its answer.
    pub(super) fn finish(&self) {
        let left = self.in_flight.get().saturating_sub(1);
        self.in_flight.set(left);
        if left == 0 {
            self.enter(Stage::Idle);
        }
    }

    /// A request waits for more of its body.
    pub(super) fn await_body(&self) {
        self.bodies.set(self.bodies.get() + 1);
    }

    /// A request no longer waits for its body.
    pub(super) fn end_body(&self) {
        self.bodies.set(self.bodies.get().saturating_sub(1));
    }

    /// Whether there was no room for all that is to be written.
    pub(super) fn set_stuck(&self, stuck: bool) {
        self.stuck.set(stuck);
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.get()
    }

    /// Nothing more will be said.
    pub(super) fn last(&self) {
        self.enter(Stage::Last);
    }

    /// The last stage is never left, though streams may still end after their connection.
    fn enter(&self, stage: Stage) {
        if self.stage.get() != Stage::Last {
            self.stage.set(stage);
            self.since.set(self.now.get());
        }
    }

    /// What would be lost with the connection; `None` when that must not be.
    pub(super) fn worth(&self) -> Option<Worth> {
        match self.stage.get() {
            Stage::Busy if self.bodies.get() < self.in_flight.get() => None,
            _ if self.stuck.get() => Some(Worth::Answer),
            Stage::Busy => Some(Worth::Body),
            Stage::New | Stage::Head | Stage::Idle | Stage::Last => Some(Worth::Nothing),
        }
    }

    /// Has the connection's task run and see its order. To close cannot be outbid.
    pub(super) fn tell(&self, order: Order) {
        if self.order.get() != Order::Close {
            self.order.set(order);
        }
        self.wake();
    }

    /// Puts the end off for as long as saying why may take.
    pub(super) fn last_words(&self) {
        self.order.set(Order::Finish);
        self.last();
    }

    /// Polls `step` until it is ready or the order is to close, and lets [`tell`](Self::tell) wake the task.
    pub(super) async fn until_closed<T>(
        &self,
        mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        poll_fn(|context| self.poll_until_closed(context, &mut step)).await
    }

    /// One poll of it.
    pub(super) fn poll_until_closed<T>(
        &self,
        context: &mut Context<'_>,
        step: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        self.listen(context.waker());
        match step(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.order.get() == Order::Close => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Nothing has to come first: a connection that says nothing has the time of an idle one.
    pub(super) fn welcome(&self) {
        self.enter(Stage::Idle);
    }

    /// Has the connection's task run.
    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn listen(&self, waker: &Waker) {
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
pub struct Busy(Rc<Life>);

impl Busy {
    pub(super) fn new(life: &Rc<Life>) -> Self {
        life.begin();
        Self(life.clone())
    }

    pub(super) fn life(&self) -> &Rc<Life> {
        &self.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.finish();
        if std::thread::panicking() {
            Stats::add(&self.0.front.stats.panics);
        }
    }
}
