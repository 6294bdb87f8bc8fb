//! One key: every node that is asked about it, and its ledger. Keys have nothing to do with each
//! other, so that one at a time is enough.

use crate::oracle::Oracle;
use crate::rng::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState};
use tollgate_store::lease::{Holder, Lease, LeaseTerms, Ledger, LedgerReply, LedgerRequest};

/// How long a request waits for an answer of the store.
const PATIENCE_NS: u64 = 25_000_000;
/// Requests at one node within a lifetime from which on it takes a lease, as the Redis store has
/// it.
const WARM: u64 = 4;
/// How long a message takes, one way: a round trip within one data centre, and the queue in front
/// of the script.
const TRIP_NS: (u64, u64) = (100_000, 400_000);
/// For how long a refusal is remembered where nothing is leased.
const DENIED_US_MOST: u64 = 1_000_000;
/// The start of a window, whatever its length.
const EPOCH_NS: u64 = 1_699_999_200_000_000_000;
/// Calls are counted in slots of this length, so that the worst can be found.
pub(super) const SLOT_NS: u64 = 100_000_000;

/// What happens to one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyPlan {
    pub(super) params: LimitParams,
    /// `None` where the limit is decided directly.
    pub(super) terms: Option<LeaseTerms>,
    /// Nodes that its requests may come to, each as likely as the others.
    pub(super) nodes: usize,
    /// Requests in a thousand seconds, all nodes together.
    pub(super) per_1000_s: u64,
    /// Not counted, counted, in whole windows.
    pub(super) windows: (u64, u64),
}

impl KeyPlan {
    fn central(&self) -> LimitParams {
        self.terms.map_or(self.params, |terms| terms.store_params)
    }
}

/// What came of it in the windows that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) requests: u64,
    pub(super) admitted: u64,
    /// Requests that the store decided, each a call of its own.
    pub(super) direct: u64,
    /// Those that were admitted by a lease for which they had waited.
    pub(super) waited: u64,
    /// What one that decides every request exactly, at once, would have admitted.
    pub(super) ideal: u64,
    /// The most that one node held.
    pub(super) held_most: u64,
    /// Requests to the store, by slot.
    pub(super) calls: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
enum KeyEvent {
    Arrives { node: usize, number: u64, ask: LedgerRequest },
    Answers { node: usize, number: u64, reply: LedgerReply },
    Tick { node: usize },
    Decides { node: usize },
    Denies { node: usize, wait_us: u64, reset_us: u64 },
}

#[derive(Debug, Default)]
struct KeyNode {
    lease: Option<Lease>,
    /// Requests without a lease: in which lifetime, and how many.
    warmth: (u64, u64),
    ticking: bool,
    /// When those give up who wait for more.
    waiting_ns: Vec<u64>,
    /// The store refused a request, and will until then.
    denied_until_ns: u64,
}

/// Nodes, messages and ledger.
pub(super) struct Key {
    plan: KeyPlan,
    rng: Rng,
    now_ns: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: Vec<KeyEvent>,
    free: Vec<usize>,
    serial: u64,
    holdings: u64,
    nodes: Vec<KeyNode>,
    ledger: Ledger,
    from_ns: u64,
    /// The limit as it is without leases, and what was really admitted.
    exact: LimitState,
    oracle: Oracle,
    outcome: Outcome,
}

impl Key {
    /// Runs one key from a seed.
    pub(super) fn run(plan: KeyPlan, seed: u64) -> Outcome {
        let window_ns = plan.params.period_us() * 1_000;
        let from_ns = EPOCH_NS + plan.windows.0 * window_ns;
        let end_ns = from_ns + plan.windows.1 * window_ns;
        let slots = (end_ns - from_ns).div_ceil(SLOT_NS) as usize;
        let mut key = Self {
            plan,
            rng: Rng::new(seed),
            now_ns: EPOCH_NS,
            queue: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            serial: 0,
            holdings: 0,
            nodes: (0..plan.nodes).map(|_| KeyNode::default()).collect(),
            ledger: Ledger::default(),
            from_ns,
            exact: LimitState::default(),
            oracle: Oracle::new(plan.params, false),
            outcome: Outcome { calls: vec![0; slots], ..Outcome::default() },
        };
        key.requests(end_ns);
        key.outcome
    }

    fn requests(&mut self, end_ns: u64) {
        // Up to twice the mean, and on average the mean.
        let between_ns = 1_000_000_000_000 / self.plan.per_1000_s.max(1);
        let mut next_ns = EPOCH_NS + self.rng.within(0, 2 * between_ns);
        while next_ns < end_ns {
            self.happen_until(next_ns);
            self.now_ns = next_ns;
            self.request();
            next_ns += self.rng.within(0, 2 * between_ns);
        }
        self.happen_until(end_ns - 1);
    }

    fn happen_until(&mut self, until_ns: u64) {
        while let Some(Reverse((at_ns, tagged))) = self.queue.peek().copied()
            && at_ns <= until_ns
        {
            self.queue.pop();
            self.now_ns = at_ns;
            let place = (tagged & 0xffff_ffff) as usize;
            self.free.push(place);
            self.happen(self.events[place]);
        }
    }

    fn counts(&self) -> bool {
        self.now_ns >= self.from_ns
    }

    /// Something is admitted, now. That it may be is what the oracle is sure of.
    fn admit(&mut self) {
        let now_us = self.now_ns / 1_000;
        self.outcome.admitted += u64::from(self.counts());
        self.oracle.admit(now_us, now_us, 1).expect("never more than the limit");
    }

    /// Counts the request, and what would become of it where nothing is leased.
    fn count(&mut self) {
        let (now_us, params) = (self.now_ns / 1_000, self.plan.params);
        let admitted = params.decide(&self.exact, now_us, 1, Intent::Take).admitted;
        if admitted {
            params.charge(&mut self.exact, now_us, 1);
        }
        if self.counts() {
            self.outcome.requests += 1;
            self.outcome.ideal += u64::from(admitted);
        }
    }

    fn at(&mut self, after_ns: u64, event: KeyEvent) {
        let place = self.free.pop().unwrap_or(self.events.len());
        match self.events.get_mut(place) {
            Some(free) => *free = event,
            None => self.events.push(event),
        }
        self.serial += 1;
        self.queue.push(Reverse((self.now_ns + after_ns, self.serial << 32 | place as u64)));
    }

    fn happen(&mut self, event: KeyEvent) {
        match event {
            KeyEvent::Arrives { node, number, ask } => {
                let clock_us = self.now_ns / 1_000;
                self.ledger.expire(clock_us);
                let Some(terms) = &self.plan.terms else { return };
                let reply = self.ledger.handle(clock_us, 1_000_000, terms, &ask);
                let trip_ns = self.trip_ns();
                self.at(trip_ns, KeyEvent::Answers { node, number, reply });
            }
            KeyEvent::Answers { node, number, reply } => self.answer(node, number, &reply),
            KeyEvent::Tick { node } => self.tick(node),
            KeyEvent::Decides { node } => self.decide(node),
            KeyEvent::Denies { node, wait_us, reset_us } => self.deny(node, wait_us, reset_us),
        }
    }

    /// One request at some node: from its lease, refused as the store did lately, waiting for more,
    /// or decided by the store.
    fn request(&mut self) {
        let node = self.rng.within(0, self.nodes.len() as u64 - 1) as usize;
        let now_us = self.now_ns / 1_000;
        self.count();
        let Some(lease) = self.nodes[node].lease.as_mut() else {
            if self.now_ns >= self.nodes[node].denied_until_ns {
                self.ask_directly(node);
            }
            return self.warm(node);
        };
        if lease.spend(now_us, 1).is_some() {
            self.admit();
            return self.want(node, 0);
        }
        if now_us >= lease.ask_not_before_us() {
            self.waits(node, self.now_ns + PATIENCE_NS);
        }
    }

    fn waits(&mut self, node: usize, gives_up_ns: u64) {
        self.nodes[node].waiting_ns.push(gives_up_ns);
        self.want(node, 1);
    }

    /// The store has said something, perhaps to those who waited for it.
    fn go_on(&mut self, node: usize) {
        let now_us = self.now_ns / 1_000;
        for gives_up_ns in std::mem::take(&mut self.nodes[node].waiting_ns) {
            let Some(lease) = self.nodes[node].lease.as_mut() else { return };
            if gives_up_ns <= self.now_ns {
                continue;
            }
            if lease.spend_counted(now_us, 1).is_some() {
                self.outcome.waited += u64::from(self.counts());
                self.admit();
            } else if now_us >= lease.ask_not_before_us() {
                self.waits(node, gives_up_ns);
            }
        }
    }

    /// A key that is asked for often enough gets a lease.
    fn warm(&mut self, node: usize) {
        let Some(terms) = self.plan.terms else { return };
        let now_us = self.now_ns / 1_000;
        let lifetime = now_us / terms.lifetime_us;
        let (of, count) = self.nodes[node].warmth;
        let count = if of == lifetime { count + 1 } else { 1 };
        self.nodes[node].warmth = (lifetime, count);
        if count >= WARM {
            self.holdings += 1;
            self.nodes[node].lease = Some(Lease::new(holder(node, self.holdings), now_us));
            self.send(node, (1, false));
        }
    }

    fn ask_directly(&mut self, node: usize) {
        self.count_call();
        self.outcome.direct += u64::from(self.counts());
        let trip_ns = self.trip_ns();
        self.at(trip_ns, KeyEvent::Decides { node });
    }

    /// The store decides one request, by the state that leases are granted from.
    fn decide(&mut self, node: usize) {
        let (clock_us, params) = (self.now_ns / 1_000, self.plan.central());
        self.ledger.expire(clock_us);
        let state = self.ledger.state.get_or_insert_default();
        let shown = params.decide(state, clock_us, 1, Intent::Take);
        if shown.admitted {
            params.charge(state, clock_us, 1);
        }
        let kept_us = params.idle_at_us(state).saturating_sub(clock_us) + 1_000_000;
        self.ledger.expires_us = self.ledger.expires_us.max(clock_us + kept_us);
        if shown.admitted {
            self.admit();
        } else if let Some(wait_us) = shown.retry_after_us {
            let trip_ns = self.trip_ns();
            self.at(trip_ns, KeyEvent::Denies { node, wait_us, reset_us: shown.reset_after_us });
        }
    }

    /// What the store refused is remembered.
    fn deny(&mut self, node: usize, wait_us: u64, reset_us: u64) {
        let one = &mut self.nodes[node];
        if self.plan.terms.is_none() {
            one.denied_until_ns = self.now_ns + 1_000 * wait_us.min(DENIED_US_MOST);
        }
        if let Some((lease, terms)) = one.lease.as_mut().zip(self.plan.terms) {
            lease.record_refusal(&terms, self.now_ns / 1_000, 0, (Some(wait_us), reset_us));
        }
    }

    fn count_call(&mut self) {
        if self.counts() {
            let slot = ((self.now_ns - self.from_ns) / SLOT_NS) as usize;
            self.outcome.calls[slot] += 1;
        }
    }

    fn should_ask(&self, node: usize, need: u64) -> bool {
        let now_us = self.now_ns / 1_000;
        self.nodes[node].lease.as_ref().is_some_and(|lease| lease.should_ask(now_us, need))
    }

    fn want(&mut self, node: usize, need: u64) {
        if self.should_ask(node, need) {
            self.send(node, (need, false));
        }
    }

    fn send(&mut self, node: usize, what: (u64, bool)) {
        let now_us = self.now_ns / 1_000;
        self.holdings += 1;
        let (number, renewed) = (self.holdings, holder(node, self.holdings));
        let Some((lease, terms)) = self.nodes[node].lease.as_mut().zip(self.plan.terms) else {
            return;
        };
        let ask = lease.start_request(&terms, now_us, what, number, renewed);
        self.count_call();
        let trip_ns = self.trip_ns();
        self.at(trip_ns, KeyEvent::Arrives { node, number, ask });
    }

    fn answer(&mut self, node: usize, number: u64, reply: &LedgerReply) {
        let now_us = self.now_ns / 1_000;
        self.holdings += 1;
        let renewed = holder(node, self.holdings);
        let Some((lease, terms)) = self.nodes[node].lease.as_mut().zip(self.plan.terms) else {
            return;
        };
        lease.apply_reply(&terms, now_us, number, reply, renewed);
        self.outcome.held_most = self.outcome.held_most.max(lease.balance());
        self.go_on(node);
        self.want(node, 0);
        self.keep_ticking(node);
    }

    /// A holder checks now and then whether its lease has to be returned, or can be dropped.
    fn tick(&mut self, node: usize) {
        self.nodes[node].ticking = false;
        let now_us = self.now_ns / 1_000;
        let Some((lease, terms)) = self.nodes[node].lease.as_mut().zip(self.plan.terms) else {
            return;
        };
        if lease.should_return(now_us) {
            self.send(node, (0, true));
        } else if lease.can_be_dropped(&terms, now_us) {
            self.nodes[node].lease = None;
            return;
        } else {
            self.want(node, 0);
        }
        self.keep_ticking(node);
    }

    fn keep_ticking(&mut self, node: usize) {
        if !std::mem::replace(&mut self.nodes[node].ticking, true) {
            let lifetime_us = self.plan.terms.map_or(1_000_000, |terms| terms.lifetime_us);
            let after_us = (lifetime_us / 8).max(8_000);
            self.at(after_us * 1_000, KeyEvent::Tick { node });
        }
    }

    fn trip_ns(&mut self) -> u64 {
        self.rng.within(TRIP_NS.0, TRIP_NS.1)
    }
}

fn holder(node: usize, number: u64) -> Holder {
    Holder { process: [0, 0, 0, node as u32], number }
}
