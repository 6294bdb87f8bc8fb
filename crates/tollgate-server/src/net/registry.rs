//! The connections of one worker: their deadlines, their end, and who goes first when there is no room.

use super::{
    Stats,
    life::{Life, Order, Stage, Terms},
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
    draining: Cell<bool>,
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
        Self {
            lives: RefCell::default(),
            tick: tick.max(Duration::from_millis(1)),
            now: Rc::default(),
            draining: Cell::new(false),
            changed: Notify::new(),
        }
    }

    pub(super) fn tick(&self) -> Duration {
        self.tick
    }

    pub(super) fn enter(self: &Rc<Self>, front: &Rc<Terms>) -> Place {
        let life = Rc::new(Life::new(front.clone(), self.now.clone()));
        if self.draining.get() {
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
        for (_, life) in self.lives.borrow().iter() {
            let limits = &life.front.limits;
            let allowed = match life.stage() {
                Stage::New | Stage::Idle if self.draining.get() => limits.last_call,
                Stage::New | Stage::Head => limits.head,
                Stage::Idle => limits.idle,
                Stage::Last => limits.linger,
                Stage::Busy => continue,
            };
            // The stage began somewhere within its first tick, so that one does not count.
            let whole = self.now.get().saturating_sub(life.since() + 1);
            if u128::from(whole) * self.tick.as_nanos() >= allowed.as_nanos()
                && life.order() != Order::Close
            {
                Stats::add(&life.front.stats.expired);
                life.tell(Order::Close);
            }
        }
    }

    /// Closes the connection that has been idle for longest, of one front end or of all.
    pub(super) fn evict(&self, front: Option<usize>) {
        let lives = self.lives.borrow();
        let candidates = lives.iter().map(|(_, life)| life).filter(|life| {
            life.is_idle()
                && life.order() != Order::Close
                && front.is_none_or(|front| life.front.index == front)
        });
        if let Some(life) = candidates.min_by_key(|life| life.since()) {
            Stats::add(&life.front.stats.evicted);
            life.tell(Order::Close);
        }
    }

    /// Has every connection end once nothing is under way on it, those to come included.
    pub(super) fn drain(&self) {
        self.draining.set(true);
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
