//! The connections of one worker: their deadlines, their end, and who goes first when there is no room.

use super::{
    Stats,
    alarm::Alarms,
    life::{Life, Order, Stage, Terms, Worth},
};
use slab::Slab;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};
use tokio::sync::Notify;

/// Every open connection of a worker.
///
/// Deadlines are looked at in passing, once a tick for all of them: that costs a connection no timer, and a request no
/// look at the clock.
#[derive(Debug)]
pub(super) struct Registry {
    lives: RefCell<Slab<Rc<Life>>>,
    tick: Duration,
    now: Rc<Cell<u64>>,
    alarms: Rc<Alarms>,
    /// How many connections there were.
    entered: Cell<u64>,
    /// The tick at which a drain began.
    drained_at: Cell<Option<u64>>,
    /// The first came, or the last went.
    changed: Notify,
}

/// A connection's place, given up when dropped.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) life: Rc<Life>,
    registry: Rc<Registry>,
    key: usize,
}

impl Registry {
    pub(super) fn new(tick: Duration) -> Self {
        let tick = tick.max(Duration::from_millis(1));
        let alarms = Rc::new(Alarms::new(tick));
        Self {
            lives: RefCell::default(),
            tick,
            now: alarms.now.clone(),
            alarms,
            entered: Cell::new(0),
            drained_at: Cell::new(None),
            changed: Notify::new(),
        }
    }

    pub(super) fn tick(&self) -> Duration {
        self.tick
    }

    pub(super) fn enter(self: &Rc<Self>, front: &Rc<Terms>) -> Place {
        self.entered.set(self.entered.get() + 1);
        let life = Rc::new(Life::new(front.clone(), self.alarms.clone(), self.entered.get()));
        if self.drained_at.get().is_some() {
            life.tell(Order::Finish);
        }
        let key = self.lives.borrow_mut().insert(life.clone());
        if self.len() == 1 {
            self.changed.notify_waiters();
        }
        Place { life, registry: self.clone(), key }
    }

    fn len(&self) -> usize {
        self.lives.borrow().len()
    }

    /// Waits until there is a connection.
    pub(super) async fn occupied(&self) {
        while self.len() == 0 {
            self.changed.notified().await;
        }
    }

    /// Waits until there is none.
    pub(super) async fn emptied(&self) {
        while self.len() > 0 {
            self.changed.notified().await;
        }
    }

    /// Lets a tick pass, and closes what has waited for too long.
    pub(super) fn pass(&self) {
        self.now.set(self.now.get() + 1);
        self.alarms.ring();
        for (_, life) in self.lives.borrow().iter() {
            let limits = &life.front.limits;
            let (allowed, since) = match (life.stage(), self.drained_at.get()) {
                // The last call is for everybody, however long they had been idle before it.
                (Stage::New | Stage::Idle, Some(at)) => (limits.last_call, life.since().max(at)),
                (Stage::New | Stage::Head, _) => (limits.head, life.since()),
                (Stage::Idle, None) => (limits.idle, life.since()),
                (Stage::Last, _) => (limits.linger, life.since()),
                (Stage::Busy, _) => continue,
            };
            if self.passed(since, allowed) && life.order() != Order::Close {
                Stats::add(&life.front.stats.expired);
                life.tell(Order::Close);
            }
        }
    }

    /// Whether at least this much time has passed since a tick.
    fn passed(&self, since: u64, time: Duration) -> bool {
        // What began then began somewhere within that tick, so it does not count.
        let whole = self.now.get().saturating_sub(since + 1);
        u128::from(whole) * self.tick.as_nanos() >= time.as_nanos()
    }

    /// Closes the connection that has been idle for longest, of one front end or of all. Where none is idle one goes whose
    /// body is slow, or else whose answer has not been read for as long as a peer is given to hear it.
    pub(super) fn evict(&self, front: Option<usize>) {
        let lives = self.lives.borrow();
        let candidates = lives.iter().map(|(_, life)| life).filter_map(|life| {
            let worth = life.worth()?;
            let may_go =
                worth < Worth::Answer || self.passed(life.since(), life.front.limits.linger);
            let is_of = front.is_none_or(|front| life.front.index == front);
            (may_go && is_of && life.order() != Order::Close).then_some((worth, life))
        });
        let first = |(worth, life): &(Worth, &Rc<Life>)| (*worth, life.since(), life.serial);
        if let Some((_, life)) = candidates.min_by_key(first) {
            Stats::add(&life.front.stats.evicted);
            life.tell(Order::Close);
        }
    }

    /// Has every connection end once nothing is under way on it, those to come included.
    pub(super) fn drain(&self) {
        self.drained_at.set(self.drained_at.get().or(Some(self.now.get())));
        self.lives.borrow().iter().for_each(|(_, life)| life.tell(Order::Finish));
    }

    /// Counts what a drain leaves behind.
    pub(super) fn cut(&self) {
        for (_, life) in self.lives.borrow().iter() {
            Stats::add(&life.front.stats.cut);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.lives.borrow_mut().try_remove(self.key);
        if self.registry.len() == 0 {
            self.registry.changed.notify_waiters();
        }
    }
}
