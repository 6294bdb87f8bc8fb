//! The queue: requests that wait for a slot, two lists for each class, all in one array.

use super::types::ShedReason;
use std::task::Waker;

/// The list in which a request waits. Lanes are served in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) class: u8,
    /// Whether the client is inside its share of the class. These requests are served first.
    pub(super) is_inside: bool,
}

impl Lane {
    fn index(self) -> usize {
        usize::from(self.class) * 2 + usize::from(!self.is_inside)
    }

    fn of(index: usize) -> Self {
        Self { class: (index / 2) as u8, is_inside: index.is_multiple_of(2) }
    }
}

/// An index into the array.
pub(super) type QueueEntryId = u32;
const NONE: QueueEntryId = QueueEntryId::MAX;

/// The waiting requests. Memory is bounded, and a depth reached before allocates nothing.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    slots: Vec<QueueEntry>,
    free: QueueEntryId,
    lists: Vec<List>,
    waiting: usize,
    capacity: usize,
}

#[derive(Debug)]
struct QueueEntry {
    lane: Lane,
    entered_us: u64,
    state: QueueEntryState,
    waker: Option<Waker>,
    older: QueueEntryId,
    newer: QueueEntryId,
}

/// The state of a waiting request. The owner frees the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueEntryState {
    Waiting,
    /// The request got a slot at this time.
    Granted(u64),
    Shed(ShedReason),
}

/// The requests of one lane, from oldest to newest.
#[derive(Debug, Clone, Copy)]
struct List {
    oldest: QueueEntryId,
    newest: QueueEntryId,
}

const EMPTY: List = List { oldest: NONE, newest: NONE };

impl WaitingRoom {
    pub(super) fn new(classes: u8, capacity: usize) -> Self {
        let (slots, lists) = (Vec::new(), lists(classes));
        Self { slots, free: NONE, lists, waiting: 0, capacity }
    }

    /// Requests that wait.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting >= self.capacity
    }

    /// The most important lane with a request that waits.
    pub(super) fn first_lane(&self) -> Option<Lane> {
        self.lists.iter().position(|list| list.oldest != NONE).map(Lane::of)
    }

    /// The most important class with a request that waits.
    pub(super) fn first_class(&self) -> Option<u8> {
        self.first_lane().map(|lane| lane.class)
    }

    /// Lanes with a request that waits, each with its oldest one; the least important first.
    pub(super) fn oldest_by_lane(&self) -> impl Iterator<Item = (Lane, QueueEntryId, u64)> {
        let lists = self.lists.iter().enumerate().rev();
        lists.filter_map(|(index, list)| {
            let (slot, entered_us) = self.entry(list.oldest)?;
            Some((Lane::of(index), slot, entered_us))
        })
    }

    pub(super) fn oldest(&self, lane: Lane) -> Option<(QueueEntryId, u64)> {
        self.entry(self.lists.get(lane.index())?.oldest)
    }

    pub(super) fn newest(&self, lane: Lane) -> Option<(QueueEntryId, u64)> {
        self.entry(self.lists.get(lane.index())?.newest)
    }

    fn entry(&self, slot: QueueEntryId) -> Option<(QueueEntryId, u64)> {
        (slot != NONE).then(|| (slot, self.slots[slot as usize].entered_us))
    }

    pub(super) fn push(&mut self, lane: Lane, now_us: u64) -> QueueEntryId {
        let older = self.lists[lane.index()].newest;
        let state = QueueEntryState::Waiting;
        let slot = QueueEntry { lane, entered_us: now_us, state, waker: None, older, newer: NONE };
        let id = match self.free {
            NONE => {
                self.slots.push(slot);
                (self.slots.len() - 1) as QueueEntryId
            }
            id => {
                self.free = self.slots[id as usize].newer;
                self.slots[id as usize] = slot;
                id
            }
        };
        match older {
            NONE => self.lists[lane.index()].oldest = id,
            older => self.slots[older as usize].newer = id,
        }
        self.lists[lane.index()].newest = id;
        self.waiting += 1;
        id
    }

    /// Ends the wait of a request, and returns the waker of its task.
    pub(super) fn resolve(&mut self, id: QueueEntryId, state: QueueEntryState) -> Option<Waker> {
        self.unlink(id);
        let slot = &mut self.slots[id as usize];
        slot.state = state;
        slot.waker.take()
    }

    pub(super) fn state(&self, id: QueueEntryId) -> QueueEntryState {
        self.slots[id as usize].state
    }

    pub(super) fn set_waker(&mut self, id: QueueEntryId, waker: &Waker) {
        match &mut self.slots[id as usize].waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    pub(super) fn class(&self, id: QueueEntryId) -> u8 {
        self.slots[id as usize].lane.class
    }

    pub(super) fn entered_us(&self, id: QueueEntryId) -> u64 {
        self.slots[id as usize].entered_us
    }

    /// Frees a slot whose owner has read its state, or has left.
    pub(super) fn free(&mut self, id: QueueEntryId) {
        if self.state(id) == QueueEntryState::Waiting {
            self.unlink(id);
        }
        self.slots[id as usize].waker = None;
        self.slots[id as usize].newer = self.free;
        self.free = id;
    }

    /// Keeps what waits when the number of classes changes: the last class takes the rest.
    pub(super) fn set_classes(&mut self, classes: u8, capacity: usize) {
        self.capacity = capacity;
        let lists = lists(classes);
        if self.lists.len() == lists.len() {
            return;
        }
        let before = std::mem::replace(&mut self.lists, lists);
        self.waiting = 0;
        for list in before {
            let mut next = list.oldest;
            while next != NONE {
                let id = next;
                next = self.slots[id as usize].newer;
                self.relink(id, classes - 1);
            }
        }
    }

    fn relink(&mut self, id: QueueEntryId, last: u8) {
        let Lane { class, is_inside } = self.slots[id as usize].lane;
        let lane = Lane { class: class.min(last), is_inside };
        let older = std::mem::replace(&mut self.lists[lane.index()].newest, id);
        let slot = &mut self.slots[id as usize];
        (slot.lane, slot.older, slot.newer) = (lane, older, NONE);
        match older {
            NONE => self.lists[lane.index()].oldest = id,
            older => self.slots[older as usize].newer = id,
        }
        self.waiting += 1;
    }

    fn unlink(&mut self, id: QueueEntryId) {
        let QueueEntry { lane, older, newer, .. } = self.slots[id as usize];
        match older {
            NONE => self.lists[lane.index()].oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.lists[lane.index()].newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        self.waiting -= 1;
    }
}

fn lists(classes: u8) -> Vec<List> {
    vec![EMPTY; 2 * usize::from(classes)]
}
