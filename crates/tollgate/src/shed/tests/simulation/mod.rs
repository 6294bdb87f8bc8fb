//! An upstream in virtual time: workers, an endless queue, and clients that send at random.
#![expect(clippy::float_arithmetic, reason = "random times of a model, not a decision")]

mod report;

pub(super) use report::{Report, part_bp};

use crate::shed::queue::{QueueEntryId, QueueEntryState};
use crate::shed::state::{AdmittedCall, LaterStep, START, ShedderState};
use crate::shed::{AdaptiveSettings, ShedRequest, UpstreamOutcome};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How long the work of a call takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Service {
    Exponential,
    /// Nine of ten take half of the mean, and one takes five and a half times as much.
    Bimodal,
    /// Pareto with infinite variance.
    HeavyTail,
}

/// A value that changes at some times, in seconds.
pub(super) type Steps<T> = Vec<(u64, T)>;

/// One run: the upstream, the load, and the guard before it.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) service: Service,
    pub(super) workers: Steps<usize>,
    pub(super) mean_us: Steps<u64>,
    pub(super) requests_per_s: Steps<u64>,
    pub(super) seconds: u64,
    /// Requests before this second are not counted.
    pub(super) warm_s: u64,
    pub(super) start: u32,
    pub(super) seed: u64,
    /// The guard is HAProxy's: 16 in flight, a queue by class, 200 ms.
    pub(super) is_haproxy: bool,
    /// The upstream refuses all calls in these seconds.
    pub(super) failing: std::ops::Range<u64>,
    /// Every new call fails at once: from when on, and until when.
    pub(super) outages_ms: Vec<(u64, u64)>,
    /// Whether an outage ends the calls in flight, as the death of the upstream does.
    pub(super) is_killed: bool,
    /// The upstream dies for a second when it has so many calls.
    pub(super) dies_at: usize,
    /// The first call after this second takes 20 seconds.
    pub(super) slow_call_s: Option<u64>,
    /// Part of the requests that one client sends, in percent. Twenty others send the rest.
    pub(super) hog_percent: u64,
    /// Part of the requests that go to a broken endpoint: it answers 503 by itself, without work.
    pub(super) broken_percent: u64,
    /// The upstream answers 503 at once to a call that finds so many others.
    pub(super) full_at: usize,
    /// A call that takes longer counts as failed, although the upstream goes on with it.
    pub(super) timeout_us: u64,
    /// All workers stand still: so often, and for so long.
    pub(super) pauses: Option<(u64, u64)>,
    /// The whole state stands still: from when on, and for how long. What was due in between
    /// happens at once afterwards.
    pub(super) stalls_us: Vec<(u64, u64)>,
    /// How long a client waits.
    pub(super) patience_us: u64,
}

pub(super) const DEFAULT: Scenario = Scenario {
    service: Service::Exponential,
    workers: Vec::new(),
    mean_us: Vec::new(),
    requests_per_s: Vec::new(),
    seconds: 25,
    warm_s: 5,
    start: START,
    seed: 1,
    is_haproxy: false,
    failing: 0..0,
    outages_ms: Vec::new(),
    is_killed: false,
    dies_at: usize::MAX,
    slow_call_s: None,
    hog_percent: 0,
    broken_percent: 0,
    full_at: usize::MAX,
    timeout_us: 1 << 40,
    pauses: None,
    stalls_us: Vec::new(),
    patience_us: SECOND_US,
};

const SECOND_US: u64 = 1_000_000;
/// The time at which a run begins.
const EPOCH_US: u64 = 1_700_000_000_000_000;
/// How long an upstream takes that answers 503 without work.
const REFUSAL_US: u64 = 1_000;
const HAPROXY: (u32, u64) = (16, 200_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive,
    Expire(usize),
    /// A client gives up.
    Leave(usize),
    Done(usize),
    /// The upstream refuses a call.
    Refuse(usize),
    /// The upstream dies.
    Die,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestStage {
    Waiting,
    InFlight,
    Ended,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    arrived_us: u64,
    class: u8,
    is_hog: bool,
    is_broken: bool,
    /// Whether the upstream died while it had the call.
    is_dead: bool,
    stage: RequestStage,
    admitted_us: u64,
}

struct World {
    plan: Scenario,
    state: ShedderState,
    random: u64,
    now_us: u64,
    next_arrival_us: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    requests: Vec<Request>,
    waiting: Vec<(QueueEntryId, usize)>,
    haproxy: ([VecDeque<usize>; 2], u32),
    busy: usize,
    upstream: VecDeque<usize>,
    had_slow_call: bool,
    dead_until_us: u64,
    report: Report,
}

impl Scenario {
    /// Eight workers with 10 ms of work, and this part of what they can do, in percent.
    pub(super) fn load(percent: u64) -> Self {
        Self {
            workers: vec![(0, 8)],
            mean_us: vec![(0, 10_000)],
            requests_per_s: vec![(0, percent * 8)],
            ..DEFAULT
        }
    }

    pub(super) fn run(self) -> Report {
        let settings = AdaptiveSettings::new(2);
        let state = ShedderState::new(settings, self.start, self.seed ^ 77);
        let mut world = World {
            state,
            random: self.seed,
            now_us: 0,
            next_arrival_us: 0,
            events: BinaryHeap::new(),
            count: 0,
            requests: Vec::new(),
            waiting: Vec::new(),
            haproxy: Default::default(),
            busy: 0,
            upstream: VecDeque::new(),
            had_slow_call: false,
            dead_until_us: 0,
            report: Report::default(),
            plan: self,
        };
        world.run();
        world.report
    }
}

fn at<T: Copy>(steps: &[(u64, T)], now_us: u64) -> T {
    let past = steps.iter().rev().find(|step| step.0 * SECOND_US <= now_us);
    past.expect("a value from the start").1
}

impl World {
    fn run(&mut self) {
        self.push(0, Event::Arrive);
        if self.plan.is_killed {
            for outage in self.plan.outages_ms.clone() {
                self.push(outage.0 * 1_000, Event::Die);
            }
        }
        let end_us = self.plan.seconds * SECOND_US;
        let mut sample_us = 0;
        while let Some(Reverse((at_us, _, event))) = self.events.pop() {
            if at_us > end_us {
                break;
            }
            let at_us = self.after_stalls(at_us).max(self.now_us);
            let passed_us = at_us - self.now_us;
            if self.now_us >= self.plan.warm_s * SECOND_US {
                self.report.busy_us += passed_us * self.busy as u64;
                self.report.capacity_us += passed_us * at(&self.plan.workers, at_us) as u64;
            }
            self.now_us = at_us;
            match event {
                Event::Arrive => self.arrive(),
                Event::Expire(id) => self.expire(id),
                Event::Leave(id) => self.leave(id),
                Event::Done(id) if self.requests[id].is_dead => {}
                Event::Die => self.die(),
                Event::Done(id) => {
                    self.busy -= 1;
                    self.work();
                    let is_failing = self.plan.failing.contains(&(self.now_us / SECOND_US));
                    self.end(id, is_failing);
                }
                Event::Refuse(id) => self.end(id, true),
            }
            self.resolve();
            if at_us >= sample_us {
                sample_us += 100_000;
                self.report.limits.push(self.state.snapshot().limit);
            }
        }
    }

    fn push(&mut self, at_us: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at_us, self.count, event)));
    }

    fn arrive(&mut self) {
        let due_us = self.next_arrival_us;
        let rate = at(&self.plan.requests_per_s, due_us);
        self.next_arrival_us = due_us + self.exponential(SECOND_US / rate.max(1)).max(1);
        self.push(self.next_arrival_us, Event::Arrive);
        let class = u8::from(self.uniform() >= 0.2);
        let is_hog = self.uniform() * 100.0 < self.plan.hog_percent as f64;
        let client = match (self.plan.hog_percent, is_hog) {
            (0, _) => 0,
            (_, true) => 0x9e37_79b9_7f4a_7c15,
            (_, false) => (1 + self.next() % 20).wrapping_mul(0xbf58_476d_1ce4_e5b9),
        };
        let is_broken = match self.plan.broken_percent {
            0 => false,
            percent => self.uniform() * 100.0 < percent as f64,
        };
        let (id, arrived_us, stage) = (self.requests.len(), due_us, RequestStage::Waiting);
        self.requests.push(Request {
            arrived_us,
            class,
            is_hog,
            is_broken,
            is_dead: false,
            stage,
            admitted_us: 0,
        });
        self.push(due_us + self.plan.patience_us, Event::Leave(id));
        if self.is_counted(id) {
            self.report.offered[usize::from(class)] += 1;
        }
        if self.plan.is_haproxy {
            self.haproxy.0[usize::from(class)].push_back(id);
            return self.push(self.now_us + HAPROXY.1, Event::Expire(id));
        }
        match self.state.enter(EPOCH_US + self.now_us, ShedRequest { class, client }) {
            None => self.admit(id),
            Some(LaterStep::Shed(_)) => self.shed(id),
            Some(LaterStep::Wait(slot)) => {
                self.waiting.push((slot, id));
                let wait_us = self.state.longest_wait_us();
                self.push(self.now_us + wait_us, Event::Expire(id));
            }
        }
    }

    fn expire(&mut self, id: usize) {
        if self.requests[id].stage != RequestStage::Waiting {
            return;
        }
        if self.plan.is_haproxy {
            self.haproxy.0[usize::from(self.requests[id].class)].retain(|&one| one != id);
            return self.shed(id);
        }
        let waiting = self.waiting.iter().find(|waiting| waiting.1 == id);
        self.state.expire(waiting.expect("it waits").0);
        self.collect();
    }

    /// A client leaves. The upstream learns nothing of it, and does the work of the call.
    fn leave(&mut self, id: usize) {
        let Request { arrived_us, class, is_hog, stage, .. } = self.requests[id];
        if stage == RequestStage::Ended {
            return;
        }
        self.requests[id].stage = RequestStage::Ended;
        if self.is_counted(id) {
            self.report.lost[usize::from(class)] += 1;
            self.report.requests.push((arrived_us, class, None));
            self.report.of_client(is_hog, class)[0] += 1;
        }
        match stage {
            RequestStage::Waiting if self.plan.is_haproxy => {
                self.haproxy.0[usize::from(class)].retain(|&one| one != id);
            }
            RequestStage::Waiting => {
                let at = self.waiting.iter().position(|waiting| waiting.1 == id);
                let (slot, _) = self.waiting.remove(at.expect("it waits"));
                self.state.abandon(slot);
            }
            _ if self.plan.is_haproxy => self.haproxy.1 -= 1,
            _ => self.finish(id, UpstreamOutcome::Abandoned),
        }
    }

    fn end(&mut self, id: usize, is_failing: bool) {
        let Request { arrived_us, class, is_hog, stage, .. } = self.requests[id];
        if stage == RequestStage::Ended {
            return;
        }
        self.requests[id].stage = RequestStage::Ended;
        let took_us = self.now_us - arrived_us;
        if self.is_counted(id) && !is_failing {
            self.report.served[usize::from(class)] += 1;
            self.report.requests.push((arrived_us, class, Some(took_us)));
            self.report.of_client(is_hog, class)[1] += 1;
        }
        if self.plan.is_haproxy {
            self.haproxy.1 -= 1;
            return;
        }
        let outcome = match is_failing {
            true => UpstreamOutcome::Overloaded,
            false => UpstreamOutcome::Ok,
        };
        self.finish(id, outcome);
    }

    fn finish(&mut self, id: usize, outcome: UpstreamOutcome) {
        let Request { class, admitted_us, .. } = self.requests[id];
        let now_us = EPOCH_US + self.now_us;
        self.state.finish(now_us, AdmittedCall { class, admitted_us }, outcome, now_us);
    }

    fn resolve(&mut self) {
        if self.plan.is_haproxy {
            while self.haproxy.1 < HAPROXY.0
                && let Some(id) = self.haproxy.0.iter_mut().find_map(VecDeque::pop_front)
            {
                self.haproxy.1 += 1;
                self.admit(id);
            }
            return;
        }
        let mut is_changed = false;
        while self.state.resolve_next().is_some() {
            is_changed = true;
        }
        if is_changed {
            self.collect();
        }
    }

    /// Reads what became of those that waited.
    fn collect(&mut self) {
        for (slot, id) in std::mem::take(&mut self.waiting) {
            match self.state.room.state(slot) {
                QueueEntryState::Waiting => {
                    self.waiting.push((slot, id));
                    continue;
                }
                QueueEntryState::Granted(_) => self.admit(id),
                QueueEntryState::Shed(_) => self.shed(id),
            }
            self.state.room.free(slot);
        }
    }

    fn admit(&mut self, id: usize) {
        self.requests[id].stage = RequestStage::InFlight;
        self.requests[id].admitted_us = EPOCH_US + self.now_us;
        let calls = self.busy + self.upstream.len();
        if calls >= self.plan.dies_at {
            self.dead_until_us = self.now_us + SECOND_US;
            self.push(self.now_us, Event::Die);
        }
        if self.is_gone() || calls >= self.plan.full_at || self.requests[id].is_broken {
            return self.push(self.now_us + REFUSAL_US, Event::Refuse(id));
        }
        self.upstream.push_back(id);
        self.push(self.now_us + self.plan.timeout_us, Event::Refuse(id));
        self.work();
    }

    /// Whether every new call fails.
    fn is_gone(&self) -> bool {
        let now_ms = self.now_us / 1_000;
        self.now_us < self.dead_until_us
            || self.plan.outages_ms.iter().any(|&(from, end)| (from..end).contains(&now_ms))
    }

    /// Fails all calls that the upstream has.
    fn die(&mut self) {
        (self.busy, self.upstream) = (0, VecDeque::new());
        for id in 0..self.requests.len() {
            let request = &mut self.requests[id];
            // A client that left may have left a call that runs.
            request.is_dead = request.admitted_us > 0;
            if request.stage == RequestStage::InFlight {
                self.end(id, true);
            }
        }
    }

    fn shed(&mut self, id: usize) {
        let Request { arrived_us, class, .. } = self.requests[id];
        self.requests[id].stage = RequestStage::Ended;
        if self.is_counted(id) {
            self.report.shed[usize::from(class)] += 1;
            self.report.requests.push((arrived_us, class, None));
            self.report.of_client(self.requests[id].is_hog, class)[0] += 1;
        }
    }

    /// Lets free workers take the oldest calls.
    fn work(&mut self) {
        while self.busy < at(&self.plan.workers, self.now_us)
            && let Some(id) = self.upstream.pop_front()
        {
            self.busy += 1;
            let took_us = self.service_us().max(1);
            let done_us = self.after_pauses(took_us);
            self.push(done_us, Event::Done(id));
        }
    }

    /// The time of an event that is due at `due_us`, after any stall.
    fn after_stalls(&self, due_us: u64) -> u64 {
        let is_in =
            |&&(from_us, for_us): &&(u64, u64)| (from_us..from_us + for_us).contains(&due_us);
        self.plan.stalls_us.iter().find(is_in).map_or(due_us, |(from_us, for_us)| from_us + for_us)
    }

    /// The end of work that begins now.
    fn after_pauses(&self, mut left_us: u64) -> u64 {
        let Some((every_us, pause_us)) = self.plan.pauses else { return self.now_us + left_us };
        let mut now_us = self.now_us;
        loop {
            // Every period ends with a pause.
            let works_us = (every_us - pause_us).saturating_sub(now_us % every_us);
            if left_us <= works_us {
                return now_us + left_us;
            }
            left_us -= works_us;
            now_us = (now_us / every_us + 1) * every_us;
        }
    }

    fn service_us(&mut self) -> u64 {
        let is_slow = self.plan.slow_call_s.is_some_and(|s| self.now_us >= s * SECOND_US);
        if is_slow && !std::mem::replace(&mut self.had_slow_call, true) {
            return 20 * SECOND_US;
        }
        let mean_us = at(&self.plan.mean_us, self.now_us);
        match self.plan.service {
            Service::Exponential => self.exponential(mean_us),
            Service::Bimodal => match self.uniform() < 0.9 {
                true => mean_us / 2,
                false => mean_us * 11 / 2,
            },
            Service::HeavyTail => {
                let scale = mean_us as f64 * 0.8 / 1.8;
                (scale / self.uniform().powf(1.0 / 1.8)).min(3e6) as u64
            }
        }
    }

    fn is_counted(&self, id: usize) -> bool {
        self.requests[id].arrived_us >= self.plan.warm_s * SECOND_US
    }

    fn exponential(&mut self, mean_us: u64) -> u64 {
        (-self.uniform().ln() * mean_us as f64) as u64
    }

    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
