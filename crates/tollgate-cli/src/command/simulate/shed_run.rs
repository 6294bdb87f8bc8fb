//! Requests in front of a virtual upstream: shedders decide, calls take time, and results keep the
//! order of rows.

use super::row_writer::{RowOutcome, RowResult};
use super::shed_tally::ShedTally;
use super::tally::Tally;
use super::upstream::UpstreamModel;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tollgate::engine::{
    Gate, GateBuffers, QueuedEntry, ReservationEnd, Rules, ShedRefusal, ShedTicket, Verdict,
};
use tollgate_policy::facts::Facts;

/// One virtual upstream behind the gate.
pub(super) struct ShedRun<'g> {
    gate: &'g Gate,
    rules: &'g Rules,
    upstream: UpstreamModel,
    /// Requests that wait for a slot.
    waiting: Vec<WaitingRequest<'g>>,
    /// Calls in flight, by their number.
    calls: VecDeque<Option<CallUnderWay>>,
    first_call: u64,
    /// The results that are not written yet, in the order of their rows.
    answers: VecDeque<Option<RowResult<'g>>>,
    first_row: u64,
    pub(super) tally: ShedTally,
}

struct WaitingRequest<'g> {
    entry: QueuedEntry,
    verdict: Verdict<'g>,
    request: Arrived,
}

/// A request that its limits admitted.
#[derive(Clone, Copy)]
struct Arrived {
    row: u64,
    time_us: u64,
    cost: u64,
    ttl_us: u64,
}

#[derive(Clone, Copy)]
struct CallUnderWay {
    request: Arrived,
    class: usize,
}

impl<'g> ShedRun<'g> {
    pub(super) fn new(gate: &'g Gate, rules: &'g Rules, upstream: UpstreamModel) -> Self {
        Self {
            gate,
            rules,
            upstream,
            waiting: Vec::new(),
            calls: VecDeque::new(),
            first_call: 0,
            answers: VecDeque::new(),
            first_row: 0,
            tally: ShedTally::new(rules.policy().classes()),
        }
    }

    /// Returns the next result, if it is known.
    pub(super) fn next_answer(&mut self) -> Option<RowResult<'g>> {
        let answer = self.answers.front_mut()?.take()?;
        self.answers.pop_front();
        self.first_row += 1;
        Some(answer)
    }

    /// Adds a result that does not depend on the upstream.
    pub(super) fn push_answer(&mut self, answer: RowResult<'g>) {
        self.answers.push_back(Some(answer));
    }

    /// Decides a check, and passes it to the shedders if it is admitted.
    pub(super) fn check(
        &mut self,
        (time_us, cost): (u64, u64),
        facts: &Facts<'_>,
        work: &mut GateBuffers,
        tally: &mut Tally<'g>,
    ) {
        let row = self.first_row + self.answers.len() as u64;
        self.answers.push_back(None);
        let id = reservation(row);
        let reserving = self.gate.reserve(self.rules, time_us, &id, facts, cost, None, work);
        let (mut verdict, ttl_us) = match reserving.now() {
            Ok((verdict, Some(ttl_us))) => (verdict, ttl_us),
            Ok((verdict, None)) => return self.refused(row, time_us, verdict, tally),
            Err(error) => return self.set(row, time_us, RowOutcome::Problem(error)),
        };
        let request = Arrived { row, time_us, cost, ttl_us };
        let (gate, rules) = (self.gate, self.rules);
        match gate.enter_reserved(rules, time_us, facts, &mut verdict, (&id, ttl_us)) {
            Some(entry) => self.waiting.push(WaitingRequest { entry, verdict, request }),
            None => self.entered(time_us, request, verdict, tally),
        }
        self.resolve(time_us, tally);
    }

    /// Advances time: ends calls and waits up to `now_us`.
    pub(super) fn advance(&mut self, now_us: u64, tally: &mut Tally<'g>) {
        loop {
            let deadline = self.waiting.iter().map(|waiting| waiting.entry.deadline_us()).min();
            let end = self.upstream.next_end_us();
            let next_us = deadline.into_iter().chain(end).min().filter(|at_us| *at_us <= now_us);
            let Some(next_us) = next_us else { break };
            self.tally.sample(next_us, || self.gate.adaptive().map(|shedder| shedder.limit));
            if end.is_some_and(|end_us| end_us == next_us) {
                self.end_call();
            } else {
                self.expire(next_us, tally);
            }
            self.resolve(next_us, tally);
        }
    }

    /// Ends all calls.
    pub(super) fn finish(&mut self, tally: &mut Tally<'g>) {
        self.advance(u64::MAX, tally);
    }

    fn end_call(&mut self) {
        let Some(ended) = self.upstream.end_next() else { return };
        let index = (ended.call - self.first_call) as usize;
        let Some(call) = self.calls.get_mut(index).and_then(Option::take) else { return };
        while self.calls.front().is_some_and(Option::is_none) {
            self.calls.pop_front();
            self.first_call += 1;
        }
        let Arrived { row, time_us, cost, .. } = call.request;
        // The reservations of this run are in memory and end only once, so this cannot fail.
        let _ = self.gate.end(ended.at_us, &reservation(row), ReservationEnd::Settle(cost)).now();
        self.tally.served(call.class, time_us, ended.at_us - time_us);
    }

    fn expire(&mut self, now_us: u64, tally: &mut Tally<'g>) {
        let is_over = |waiting: &WaitingRequest<'_>| waiting.entry.deadline_us() <= now_us;
        let Some(place) = self.waiting.iter().position(is_over) else { return };
        let WaitingRequest { entry, verdict, request } = self.waiting.remove(place);
        self.left_queue(now_us, request, verdict, entry.expire(), tally);
    }

    /// Polls the waiting requests until none changes.
    fn resolve(&mut self, now_us: u64, tally: &mut Tally<'g>) {
        let mut context = Context::from_waker(Waker::noop());
        let mut place = 0;
        while place < self.waiting.len() {
            match Pin::new(&mut self.waiting[place].entry).poll(&mut context) {
                Poll::Pending => place += 1,
                Poll::Ready(waited) => {
                    let WaitingRequest { verdict, request, .. } = self.waiting.remove(place);
                    self.left_queue(now_us, request, verdict, waited, tally);
                    place = 0;
                }
            }
        }
    }

    fn left_queue(
        &mut self,
        now_us: u64,
        request: Arrived,
        mut verdict: Verdict<'g>,
        waited: Result<ShedTicket, ShedRefusal>,
        tally: &mut Tally<'g>,
    ) {
        let (id, ttl_us) = (reservation(request.row), request.ttl_us);
        let (gate, rules) = (self.gate, self.rules);
        gate.leave_reserved_queue(rules, now_us, &mut verdict, (&id, ttl_us), waited);
        self.entered(now_us, request, verdict, tally);
    }

    /// Calls the upstream, or cancels the reservation of a request that was shed.
    fn entered(
        &mut self,
        now_us: u64,
        request: Arrived,
        verdict: Verdict<'g>,
        tally: &mut Tally<'g>,
    ) {
        let Arrived { row, time_us, .. } = request;
        let class = verdict.shed.map_or(0, |shed| shed.class);
        self.tally.offered(class, time_us);
        if verdict.allowed {
            let call = self.first_call + self.calls.len() as u64;
            self.calls.push_back(Some(CallUnderWay { request, class }));
            self.upstream.begin(now_us, call);
        } else {
            self.tally.shed(class);
            let _ = self.gate.end(now_us, &reservation(row), ReservationEnd::Cancel).now();
        }
        self.answer(row, time_us, verdict, tally);
    }

    /// Answers a request that its limits or the fleet refused.
    fn refused(&mut self, row: u64, time_us: u64, verdict: Verdict<'g>, tally: &mut Tally<'g>) {
        if let Some(shed) = verdict.shed.filter(|shed| shed.reason.is_some()) {
            self.tally.offered(shed.class, time_us);
            self.tally.shed(shed.class);
        }
        self.answer(row, time_us, verdict, tally);
    }

    fn answer(&mut self, row: u64, time_us: u64, verdict: Verdict<'g>, tally: &mut Tally<'g>) {
        tally.count(time_us, &verdict);
        self.set(row, time_us, RowOutcome::Decided(verdict, None));
    }

    fn set(&mut self, row: u64, time_us: u64, outcome: RowOutcome<'g>) {
        let place = (row - self.first_row) as usize;
        if let Some(answer) = self.answers.get_mut(place) {
            *answer = Some(RowResult { time_us, outcome });
        }
    }
}

fn reservation(row: u64) -> String {
    format!("call-{row}")
}
