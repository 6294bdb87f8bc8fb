//! Calls whose clients left: the upstream does not know, and most servers do the work all the same.
//!
//! Such a call keeps its slot until the upstream has probably ended it. Otherwise clients that lose
//! their patience in an overload make room for others, and the queue of the upstream grows by each
//! one: it then works for nobody, and everybody leaves.

use std::cmp::Ordering;

/// The longest time for which a call keeps its slot, if its client has waited for less.
const HOLD_US: u64 = 1_000_000;

/// The calls that were abandoned and may still be worked on. Each has a slot, so the limit bounds
/// their number.
#[derive(Debug, Default)]
pub(super) struct AbandonedCalls(Vec<AbandonedCall>);

#[derive(Debug, Clone, Copy)]
struct AbandonedCall {
    class: u8,
    admitted_us: u64,
    expires_us: u64,
}

impl AbandonedCalls {
    /// Keeps the slot of a call until it has ended, or for as long as all that is in flight takes,
    /// but no longer than its client has waited or for a second.
    pub(super) fn push(&mut self, class: u8, admitted_us: u64, now_us: u64, drains_us: u64) {
        let waited_us = now_us.saturating_sub(admitted_us);
        let expires_us = now_us.saturating_add(drains_us.min(waited_us.max(HOLD_US)));
        self.0.push(AbandonedCall { class, admitted_us, expires_us });
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out the class of a call that was admitted no later than one that has just ended:
    /// upstreams take the oldest call first.
    pub(super) fn pop_older(&mut self, admitted_us: u64) -> Option<u8> {
        self.pop(|call| call.admitted_us.cmp(&admitted_us))
    }

    /// Takes out the class of a call that has probably ended by now.
    pub(super) fn pop_expired(&mut self, now_us: u64) -> Option<u8> {
        self.pop(|call| call.expires_us.cmp(&now_us))
    }

    fn pop(&mut self, order: impl Fn(&AbandonedCall) -> Ordering) -> Option<u8> {
        let at = self.0.iter().position(|call| order(call).is_le())?;
        Some(self.0.swap_remove(at).class)
    }
}
