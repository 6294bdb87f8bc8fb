//! The queue: requests that wait for a slot, a list for each class, all in one array.

use super::types::ShedReason;
use std::task::Waker;

/// A place in the array.
pub(super) type SlotId = u32;
const NONE: SlotId = SlotId::MAX;

/// The requests that wait. Its memory is bounded, and a known depth allocates nothing.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    slots: Vec<Slot>,
    free: SlotId,
    lists: Vec<List>,
    waiting: usize,
    capacity: usize,
}

#[derive(Debug)]
struct Slot {
    class: u8,
    entered_us: u64,
    state: SlotState,
    waker: Option<Waker>,
    older: SlotId,
    newer: SlotId,
}

/// What became of a request that waits. Its owner frees the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    Waiting,
    /// It got a slot at this time.
    Granted(u64),
    Shed(ShedReason),
}

/// The requests of one class, from the oldest to the newest.
#[derive(Debug, Clone, Copy)]
struct List {
    oldest: SlotId,
    newest: SlotId,
}

const EMPTY: List = List { oldest: NONE, newest: NONE };

impl WaitingRoom {
    pub(super) fn new(classes: u8, capacity: usize) -> Self {
        let (slots, lists) = (Vec::new(), vec![EMPTY; classes.into()]);
        Self { slots, free: NONE, lists, waiting: 0, capacity }
    }

    /// Requests that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting >= self.capacity
    }

    /// The most important class with a request that waits.
    pub(super) fn first_class(&self) -> Option<u8> {
        self.lists.iter().position(|list| list.oldest != NONE).map(|class| class as u8)
    }

    /// The least important class with a request that waits.
    pub(super) fn last_class(&self) -> Option<u8> {
        self.lists.iter().rposition(|list| list.oldest != NONE).map(|class| class as u8)
    }

    pub(super) fn oldest(&self, class: u8) -> Option<(SlotId, u64)> {
        self.entry(self.lists.get(usize::from(class))?.oldest)
    }

    pub(super) fn newest(&self, class: u8) -> Option<(SlotId, u64)> {
        self.entry(self.lists.get(usize::from(class))?.newest)
    }

    fn entry(&self, slot: SlotId) -> Option<(SlotId, u64)> {
        (slot != NONE).then(|| (slot, self.slots[slot as usize].entered_us))
    }

    pub(super) fn push(&mut self, class: u8, now_us: u64) -> SlotId {
        let older = self.lists[usize::from(class)].newest;
        let state = SlotState::Waiting;
        let slot = Slot { class, entered_us: now_us, state, waker: None, older, newer: NONE };
        let id = match self.free {
            NONE => {
                self.slots.push(slot);
                (self.slots.len() - 1) as SlotId
            }
            id => {
                self.free = self.slots[id as usize].newer;
                self.slots[id as usize] = slot;
                id
            }
        };
        match older {
            NONE => self.lists[usize::from(class)].oldest = id,
            older => self.slots[older as usize].newer = id,
        }
        self.lists[usize::from(class)].newest = id;
        self.waiting += 1;
        id
    }

    /// Ends the wait of a request, and returns the waker of its task.
    pub(super) fn resolve(&mut self, id: SlotId, state: SlotState) -> Option<Waker> {
        self.unlink(id);
        let slot = &mut self.slots[id as usize];
        slot.state = state;
        slot.waker.take()
    }

    pub(super) fn state(&self, id: SlotId) -> SlotState {
        self.slots[id as usize].state
    }

    pub(super) fn set_waker(&mut self, id: SlotId, waker: &Waker) {
        match &mut self.slots[id as usize].waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    pub(super) fn class(&self, id: SlotId) -> u8 {
        self.slots[id as usize].class
    }

    /// Frees a slot whose owner has read its state, or has left.
    pub(super) fn free(&mut self, id: SlotId) {
        if self.state(id) == SlotState::Waiting {
            self.unlink(id);
        }
        self.slots[id as usize].waker = None;
        self.slots[id as usize].newer = self.free;
        self.free = id;
    }

    /// Keeps what waits when the number of classes changes: the last class takes the rest.
    pub(super) fn set_classes(&mut self, classes: u8, capacity: usize) {
        self.capacity = capacity;
        if self.lists.len() == usize::from(classes) {
            return;
        }
        let before = std::mem::replace(&mut self.lists, vec![EMPTY; classes.into()]);
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

    fn relink(&mut self, id: SlotId, last: u8) {
        let class = self.slots[id as usize].class.min(last);
        let older = std::mem::replace(&mut self.lists[usize::from(class)].newest, id);
        let slot = &mut self.slots[id as usize];
        (slot.class, slot.older, slot.newer) = (class, older, NONE);
        match older {
            NONE => self.lists[usize::from(class)].oldest = id,
            older => self.slots[older as usize].newer = id,
        }
        self.waiting += 1;
    }

    fn unlink(&mut self, id: SlotId) {
        let Slot { class, older, newer, .. } = self.slots[id as usize];
        match older {
            NONE => self.lists[usize::from(class)].oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.lists[usize::from(class)].newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        self.waiting -= 1;
    }
}
