//! The shedder that threads share: the state behind a short lock, tickets, and queued requests.

use super::queue::{QueueEntryId, QueueEntryState};
use super::snapshot::ShedSnapshot;
use super::state::{AdmittedCall, LaterStep, START, ShedderState};
use super::types::{AdaptiveSettings, ShedReason, ShedRefusal, ShedRequest, UpstreamOutcome};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use tollgate_store::lock::{Guard, Lock};

/// Sheds load for one node: finds how many requests its upstream can take at once, lets the most
/// important ones in, and refuses the rest. Clones share one state.
#[derive(Debug, Clone)]
pub struct AdaptiveShedder {
    state: Arc<Lock<ShedderState>>,
}

/// The answer to a request that enters.
#[derive(Debug)]
#[must_use]
pub enum Entry {
    /// The request may go to the upstream.
    Admitted(ShedTicket),
    /// The request waits for a slot.
    Queued(QueuedEntry),
    /// The request is refused.
    Shed(ShedRefusal),
}

/// A slot of the upstream. Dropping it abandons the call, as
/// [`Abandoned`](UpstreamOutcome::Abandoned) does.
#[derive(Debug)]
#[must_use]
pub struct ShedTicket {
    shedder: AdaptiveShedder,
    class: u8,
    admitted_us: u64,
    is_paused: bool,
    is_finished: bool,
}

/// A request in the queue: a future of its ticket, or of its refusal.
///
/// The shedder has no timer: at [`deadline_us`](Self::deadline_us) the caller calls
/// [`expire`](Self::expire). Dropping the request leaves the queue.
#[derive(Debug)]
#[must_use]
pub struct QueuedEntry {
    shedder: AdaptiveShedder,
    slot: Option<QueueEntryId>,
    deadline_us: u64,
    /// Counts requests that were dropped while they waited.
    left: Option<Arc<AtomicU64>>,
}

/// Wakers that one step collects, before it wakes them without the lock.
const WAKERS: usize = 8;

impl AdaptiveShedder {
    /// A shedder that knows nothing about its upstream yet.
    pub fn new(settings: AdaptiveSettings) -> Self {
        Self::with_seed(settings, RandomState::new().hash_one(0_u8))
    }

    /// A shedder whose random choices are the same in each run, for simulations.
    pub fn with_seed(settings: AdaptiveSettings, seed: u64) -> Self {
        Self { state: Arc::new(Lock::new(ShedderState::new(settings, START, seed))) }
    }

    /// Admits, queues or sheds a request.
    #[inline]
    pub fn enter(&self, now_us: u64, request: ShedRequest) -> Entry {
        match enter(&self.state, now_us, request) {
            None => Entry::Admitted(self.ticket(request.class, now_us)),
            Some((state, step)) => self.enter_later(now_us, state, step),
        }
    }

    /// [Enters](Self::enter) without moving a ticket: if a slot is free, calls `admit` with the
    /// ticket and returns `None`.
    #[inline(always)]
    pub(crate) fn enter_with(
        &self,
        now_us: u64,
        request: ShedRequest,
        admit: impl FnOnce(ShedTicket),
    ) -> Option<Entry> {
        match enter(&self.state, now_us, request) {
            None => {
                admit(self.ticket(request.class, now_us));
                None
            }
            Some((state, step)) => Some(self.enter_later(now_us, state, step)),
        }
    }

    /// Queues or sheds a request that found no free slot.
    #[inline(never)]
    fn enter_later(&self, now_us: u64, mut state: StateGuard<'_>, step: LaterStep) -> Entry {
        match step {
            LaterStep::Wait(slot) => {
                let deadline_us = now_us.saturating_add(state.longest_wait_us());
                resolve(&self.state, state);
                let (shedder, slot) = (self.clone(), Some(slot));
                Entry::Queued(QueuedEntry { shedder, slot, deadline_us, left: None })
            }
            LaterStep::Shed(reason) => {
                let refusal = state.refusal(reason);
                resolve(&self.state, state);
                Entry::Shed(refusal)
            }
        }
    }

    /// The limit, what is in flight and in the queue, and counts by class.
    pub fn snapshot(&self) -> ShedSnapshot {
        self.lock().snapshot()
    }

    /// Takes new settings, and keeps what was learnt.
    pub fn update(&self, settings: AdaptiveSettings) {
        self.lock().update(settings);
    }

    #[inline]
    fn ticket(&self, class: u8, admitted_us: u64) -> ShedTicket {
        ShedTicket {
            shedder: self.clone(),
            class,
            admitted_us,
            is_paused: false,
            is_finished: false,
        }
    }

    #[inline]
    fn lock(&self) -> StateGuard<'_> {
        self.state.lock()
    }
}

type StateGuard<'a> = Guard<'a, ShedderState>;

/// Lets a request enter; returns the step and the lock if the request is not admitted at once.
#[inline(never)]
fn enter(
    shared: &Lock<ShedderState>,
    now_us: u64,
    request: ShedRequest,
) -> Option<(StateGuard<'_>, LaterStep)> {
    let mut state = shared.lock();
    let step = state.enter(now_us, request)?;
    Some((state, step))
}

#[inline(never)]
fn finish(
    shared: &Lock<ShedderState>,
    now_us: u64,
    call: AdmittedCall,
    outcome: UpstreamOutcome,
    ended_us: u64,
) {
    let mut state = shared.lock();
    state.finish(now_us, call, outcome, ended_us);
    resolve(shared, state);
}

/// Ends the waits that are over. Tasks are woken without the lock.
#[inline]
fn resolve<'a>(shared: &'a Lock<ShedderState>, state: StateGuard<'a>) {
    if state.room.len() > 0 {
        resolve_waiting(shared, state);
    }
}

#[inline(never)]
fn resolve_waiting<'a>(shared: &'a Lock<ShedderState>, mut state: StateGuard<'a>) {
    loop {
        let mut wakers: [Option<Waker>; WAKERS] = [const { None }; WAKERS];
        let mut count = 0;
        while count < WAKERS
            && let Some(waker) = state.resolve_next()
        {
            wakers[count] = waker;
            count += 1;
        }
        drop(state);
        wakers.into_iter().take(count).flatten().for_each(Waker::wake);
        if count < WAKERS {
            return;
        }
        state = shared.lock();
    }
}

impl ShedTicket {
    /// Ends the call: frees the slot, and reports how the upstream did.
    #[inline]
    pub fn finish(self, now_us: u64, outcome: UpstreamOutcome) {
        self.finish_after(now_us, outcome, None);
    }

    /// [Ends](Self::finish) a call that is reported late: `latency_us` is how long it took. It
    /// counts for the level of load at which it ended, not for the one at which it is reported.
    #[inline]
    pub fn finish_after(mut self, now_us: u64, outcome: UpstreamOutcome, latency_us: Option<u64>) {
        self.end(now_us, outcome, latency_us);
    }

    /// Ends the call in place.
    #[inline]
    pub(crate) fn end(
        &mut self,
        now_us: u64,
        mut outcome: UpstreamOutcome,
        latency_us: Option<u64>,
    ) {
        if self.is_paused {
            self.set_paused(now_us, false);
            if outcome == UpstreamOutcome::Abandoned {
                // The upstream has no whole request to work on.
                outcome = UpstreamOutcome::Ignored;
            }
        }
        self.is_finished = true;
        let ended_us = latency_us.map_or(now_us, |us| self.admitted_us.saturating_add(us));
        let call = AdmittedCall { class: self.class, admitted_us: self.admitted_us };
        finish(&self.shedder.state, now_us, call, outcome, ended_us.min(now_us));
    }

    /// Frees the slot while the upstream cannot work on the request, for example because the client
    /// still sends it, or takes it again. Taking it again waits for nothing: it may exceed the
    /// limit, and then nobody else is admitted until it is met.
    #[inline(never)]
    pub fn set_paused(&mut self, now_us: u64, is_paused: bool) {
        let changes = mem::replace(&mut self.is_paused, is_paused) != is_paused;
        if changes && !self.is_finished {
            let mut state = self.shedder.lock();
            state.set_paused(now_us, self.class, is_paused);
            resolve(&self.shedder.state, state);
        }
    }

    #[inline(never)]
    fn abandon(&mut self) {
        // The state knows a later time, if there was any event since.
        self.end(self.admitted_us, UpstreamOutcome::Abandoned, None);
    }

    /// Whether the call has ended.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The time of the admission.
    pub fn admitted_us(&self) -> u64 {
        self.admitted_us
    }
}

impl Drop for ShedTicket {
    #[inline]
    fn drop(&mut self) {
        if !self.is_finished {
            self.abandon();
        }
    }
}

impl QueuedEntry {
    /// Counts the request if it is dropped while it waits.
    pub(crate) fn count_left(&mut self, left: Arc<AtomicU64>) {
        self.left = Some(left);
    }

    /// The time at which the caller calls [`expire`](Self::expire). The shedder may shed the
    /// request earlier.
    pub fn deadline_us(&self) -> u64 {
        self.deadline_us
    }

    /// Ends the wait, if it has not ended yet.
    ///
    /// # Errors
    ///
    /// The refusal, unless the request was admitted in the meantime.
    pub fn expire(mut self) -> Result<ShedTicket, ShedRefusal> {
        let mut state = self.shedder.lock();
        if let Some(slot) = self.slot
            && state.room.state(slot) == QueueEntryState::Waiting
        {
            state.expire(slot);
        }
        drop(state);
        self.take().unwrap_or_else(|| Err(self.shedder.lock().refusal(ShedReason::Queue)))
    }

    /// The outcome of a shadow entry; `None` while it would still wait.
    pub(crate) fn end(mut self) -> Option<Result<ShedTicket, ShedRefusal>> {
        self.take()
    }

    /// The end of the wait; `None` while it lasts.
    fn take(&mut self) -> Option<Result<ShedTicket, ShedRefusal>> {
        let slot = self.slot?;
        let mut state = self.shedder.lock();
        let class = state.room.class(slot);
        let result = match state.room.state(slot) {
            QueueEntryState::Waiting => return None,
            QueueEntryState::Granted(at_us) => Ok(at_us),
            QueueEntryState::Shed(reason) => Err(state.refusal(reason)),
        };
        state.room.free(slot);
        self.slot = None;
        drop(state);
        Some(result.map(|at_us| self.shedder.ticket(class, at_us)))
    }
}

impl Future for QueuedEntry {
    type Output = Result<ShedTicket, ShedRefusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.take() {
            return Poll::Ready(result);
        }
        let Some(slot) = self.slot else { return Poll::Pending };
        self.shedder.lock().room.set_waker(slot, context.waker());
        // The wait may have ended between the two locks.
        self.take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for QueuedEntry {
    fn drop(&mut self) {
        if let (Some(_), Some(left)) = (self.slot, &self.left) {
            left.fetch_add(1, Relaxed);
        }
        // A ticket that nobody took was no call.
        if let Some(Ok(ticket)) = self.take() {
            let now_us = ticket.admitted_us;
            ticket.finish(now_us, UpstreamOutcome::Ignored);
        }
        if let Some(slot) = self.slot.take() {
            self.shedder.lock().abandon(slot);
        }
    }
}
