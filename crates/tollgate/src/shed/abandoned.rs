//! Abandoned calls: the client left, but the upstream does not know, and most servers finish the
//! work.
//!
//! An abandoned call keeps its slot until the upstream has probably finished it. Otherwise
//! impatient clients would make room for new requests, and the upstream's queue would grow by each
//! one. Then the upstream works only for clients that have left.

/// The longest time for which a call keeps its slot, if its client has waited for less.
const HOLD_US: u64 = 1_000_000;

/// A slot is kept for at most this many times the length of a call.
const CALL_TIMES: u64 = 2;

/// The calls that were abandoned and may still be worked on. Each has a slot, so the limit bounds
/// their number.
#[derive(Debug)]
pub(super) struct AbandonedCalls {
    calls: Vec<AbandonedCall>,
    /// The duration of calls whose clients stay. Decreases with each slot freed only by time: if
    /// most clients leave, an outdated long duration must not keep the others out.
    call_us: u64,
}

#[derive(Debug, Clone, Copy)]
struct AbandonedCall {
    class: u8,
    admitted_us: u64,
    expires_us: u64,
}

impl AbandonedCalls {
    pub(super) const fn new() -> Self {
        Self { calls: Vec::new(), call_us: HOLD_US }
    }

    /// Keeps the slot of a call until it has ended, or for the shortest of three times: the
    /// duration of all calls in flight, that of two calls, and a second or the client's wait.
    pub(super) fn push(&mut self, class: u8, admitted_us: u64, now_us: u64, drains_us: u64) {
        let waited_us = now_us.saturating_sub(admitted_us);
        let longest_us = waited_us.max(HOLD_US).min(self.call_us.saturating_mul(CALL_TIMES));
        let expires_us = now_us.saturating_add(drains_us.min(longest_us));
        self.calls.push(AbandonedCall { class, admitted_us, expires_us });
    }

    /// Learns how long a call took whose client stayed.
    #[inline]
    pub(super) fn learn(&mut self, call_us: u64) {
        self.call_us = self.call_us - self.call_us / 8 + call_us / 8;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes out the class of a call that was admitted no later than one that has just ended:
    /// upstreams take the oldest call first.
    pub(super) fn pop_older(&mut self, admitted_us: u64) -> Option<u8> {
        self.pop(|call| call.admitted_us <= admitted_us)
    }

    /// Takes out the class of a call that has probably ended by now.
    pub(super) fn pop_expired(&mut self, now_us: u64) -> Option<u8> {
        let expired = self.pop(|call| call.expires_us <= now_us)?;
        self.call_us -= self.call_us / 8;
        Some(expired)
    }

    fn pop(&mut self, is_over: impl Fn(&AbandonedCall) -> bool) -> Option<u8> {
        let at = self.calls.iter().position(is_over)?;
        Some(self.calls.swap_remove(at).class)
    }
}
