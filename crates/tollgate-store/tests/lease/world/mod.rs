//! Nodes, network and store under one simulated clock.

mod faults;
mod messages;

use crate::node::{Node, Undecided};
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::store::{Excuse, Primary};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tollgate_core::{Algorithm, LimitParams, Receipt};
use tollgate_store::lease::{LedgerReply, LedgerRequest, MarkerReading, SpentUnits, Trust};

/// Requests and settlements wait so long for an answer.
const PATIENCE_US: u64 = 25_000;
const EPOCH_US: u64 = 1_700_000_000_000_000;
const PRIMARIES: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Event {
    Request,
    Tick { node: usize },
    Fault,
    Drain,
    Restart { node: usize },
    Arrives { node: usize, start: u64, primary: usize, run: u64, what: Call },
    Answers { node: usize, start: u64, primary: usize, run: u64, sent_us: u64, what: Answer },
    Overdue { node: usize, start: u64, key: usize, number: u64 },
    Unlooked { node: usize, start: u64, primary: usize, number: u64 },
    Refused { node: usize, start: u64, key: usize, spent: SpentUnits },
    Cancelled { key: usize, place: usize, granted_us: u64 },
    Moved { key: usize, to: usize },
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Look { sent_us: u64, claim: Option<(u128, u64)> },
    Ask { key: usize, number: u64, ask: LedgerRequest },
    Decide { key: usize, cost: u64, number: u64, sent_us: u64 },
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Seen(Result<MarkerReading, u128>),
    Reply { key: usize, number: u64, reply: LedgerReply },
    Decided(Undecided),
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    rng: Rng,
    now_us: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    serial: u64,
    nodes: Vec<Node>,
    primaries: Vec<Primary>,
    /// By key: where it is, and until when no server serves it.
    homes: Vec<(usize, u64)>,
    pub(crate) oracles: Vec<Oracle>,
    lost: bool,
    trace: bool,
    pub(crate) calls: u64,
    pub(crate) requests: u64,
    pub(crate) steps: u64,
    pub(crate) rollbacks: u64,
    /// Units that the store decided itself.
    pub(crate) decided: u64,
    /// Admissions that were decided before a pause and happened after it.
    late: u64,
    pauses: u64,
    /// When nodes died.
    pub(crate) deaths: Vec<u64>,
}

impl World {
    pub(crate) fn new(plan: Plan, mut rng: Rng, trace: bool) -> Self {
        let stepping = plan.faults.step > 0;
        let allowed = plan.allowed_by_lifetimes();
        let pace = plan.faults.pace_ppm;
        let nodes = (0..plan.nodes).map(|_| {
            let off = rng.within(0, 2 * pace) as i64 - pace as i64;
            Node::new(PRIMARIES, off)
        });
        let nodes = nodes.collect();
        let mut world = Self {
            nodes,
            primaries: (0..PRIMARIES as u64).map(Primary::new).collect(),
            homes: (0..plan.keys).map(|key| (key % PRIMARIES, 0)).collect(),
            oracles: (0..plan.keys).map(|_| Oracle::new(plan.params, stepping)).collect(),
            now_us: EPOCH_US + rng.within(0, 5_000_000),
            plan,
            rng,
            queue: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            serial: 0,
            lost: false,
            trace,
            calls: 0,
            requests: 0,
            steps: 0,
            rollbacks: 0,
            decided: 0,
            late: 0,
            pauses: 0,
            deaths: Vec::new(),
        };
        world.oracles.iter_mut().for_each(|oracle| oracle.excuse(None, allowed));
        for node in 0..plan.nodes {
            let after_us = world.rng.within(0, plan.terms.lifetime_us);
            world.at(after_us, Event::Restart { node });
        }
        world.at(1, Event::Request);
        world.at(50_000, Event::Fault);
        if plan.hoard {
            world.at(plan.terms.grace_us, Event::Drain);
        }
        world
    }

    /// Runs to the end, or to the first thing that must not be.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let end_us = self.now_us + self.plan.length_us;
        while let Some(Reverse((at_us, tagged))) = self.queue.pop() {
            if at_us > end_us {
                break;
            }
            let place = (tagged & 0xffff_ffff) as usize;
            let event = self.events[place].take().ok_or("an event happened twice")?;
            self.free.push(place);
            self.now_us = at_us;
            self.steps += 1;
            if self.trace {
                println!("{:>9} {event:?}", at_us - EPOCH_US);
            }
            self.happen(event).map_err(|why| format!("at {}: {why}", at_us - EPOCH_US))?;
            self.check()?;
        }
        Ok(())
    }

    fn at(&mut self, after_us: u64, event: Event) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.serial += 1;
        // In the order in which they were foreseen, where they happen at once.
        self.queue.push(Reverse((self.now_us + after_us, self.serial << 32 | place as u64)));
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Request => self.request(),
            Event::Tick { node } => {
                self.tick(node);
                Ok(())
            }
            Event::Fault => {
                self.fault();
                Ok(())
            }
            Event::Drain => self.drain(),
            Event::Restart { node } => {
                let mut word = || self.rng.next() as u32;
                let process = [word(), word(), word(), word()];
                self.nodes[node].start(self.now_us, process);
                self.at(0, Event::Tick { node });
                Ok(())
            }
            Event::Arrives { node, start, primary, run, what } => {
                self.arrive((node, start), (primary, run), what)
            }
            Event::Answers { node, start, primary, run, sent_us, what } => {
                self.answer((node, start), (primary, run), sent_us, what)
            }
            Event::Overdue { node, start, key, number } => {
                let wakes_us = self.nodes[node].paused_until_us;
                if self.now_us < wakes_us {
                    self.at(wakes_us - self.now_us, event);
                } else if self.is_same(node, start) {
                    self.give_up(node, key, number);
                }
                Ok(())
            }
            Event::Unlooked { node, start, primary, number } => {
                let looks = self.nodes[node].looking[primary] == Some(number);
                if self.is_same(node, start) && looks {
                    self.nodes[node].looking[primary] = None;
                    self.nodes[node].watches[primary].connection_lost();
                }
                Ok(())
            }
            Event::Refused { node, start, key, spent } => {
                let clock_us = self.nodes[node].clock_us(self.now_us);
                if self.is_same(node, start)
                    && let Some(lease) = self.nodes[node].leases.get_mut(&key)
                {
                    lease.refund(clock_us, &spent);
                    self.nodes[node].totals.spent -= spent.units;
                }
                Ok(())
            }
            Event::Cancelled { key, place, granted_us } => {
                self.cancel(key, place, granted_us);
                Ok(())
            }
            Event::Moved { key, to } => {
                let from = self.homes[key].0;
                let taken = self.primaries[from].take(key);
                self.primaries[to].put(key, taken);
                self.homes[key] = (to, self.now_us);
                let by_us = self.primaries[to].ahead_us - self.primaries[from].ahead_us;
                self.excuse_step(key, by_us);
                Ok(())
            }
        }
    }

    fn is_same(&self, node: usize, start: u64) -> bool {
        self.nodes[node].up && self.nodes[node].starts == start
    }

    /// One request at some node. What is not there is asked for, and waited for.
    fn request(&mut self) -> Result<(), String> {
        let between_us = self.pause_between();
        self.at(between_us, Event::Request);
        let skewed = self.rng.within(0, 9) < self.plan.skew;
        let node = if skewed { 0 } else { self.rng.within(0, self.plan.nodes as u64 - 1) as usize };
        let key = self.rng.within(0, self.plan.keys as u64 - 1) as usize;
        let cost = self.rng.within(1, self.plan.cost_most);
        if !self.nodes[node].is_awake(self.now_us) {
            return Ok(());
        }
        self.requests += 1;
        if self.spend(node, key, cost)? {
        } else if self.is_left_to_store(node, key) {
            let sent_us = self.nodes[node].clock_us(self.now_us);
            let number = self.nodes[node].flight();
            self.nodes[node].asked.insert(number);
            self.post(node, self.homes[key].0, Call::Decide { key, cost, number, sent_us });
        } else {
            let gives_up_us = self.now_us + PATIENCE_US;
            self.nodes[node].waiting.entry(key).or_default().push((cost, gives_up_us));
        }
        self.want(node, key);
        self.stall(node);
        Ok(())
    }

    /// Whether the store decides a request that finds no units.
    fn is_left_to_store(&mut self, node: usize, key: usize) -> bool {
        if self.plan.direct && self.in_grace_period(node, key) {
            return true;
        }
        let clock_us = self.nodes[node].clock_us(self.now_us);
        let (watch, grace_us) =
            (self.nodes[node].watches[self.homes[key].0], self.plan.terms_of(node).grace_us);
        watch.trust(clock_us, grace_us) == Trust::Trusted && self.rng.once_in(self.plan.sparse)
    }

    /// Whether a node knows that its store may have forgotten what others hold.
    fn in_grace_period(&mut self, node: usize, key: usize) -> bool {
        let clock_us = self.nodes[node].clock_us(self.now_us);
        let watch = self.nodes[node].watches[self.homes[key].0];
        let grace_us = self.plan.terms_of(node).grace_us;
        let lease = self.nodes[node].lease(key, self.now_us);
        watch.trust(clock_us, grace_us) == Trust::GracePeriod
            || clock_us < lease.snapshot().grace_until_us
    }

    /// Every node spends all that it holds at once.
    fn drain(&mut self) -> Result<(), String> {
        let lifetime_us = self.plan.terms.lifetime_us;
        // A window's end is when most can go wrong: what is left of the old one, and the new one
        // beside it.
        let period_us = self.plan.params.period_us();
        let rest_us = period_us - self.primaries[0].clock_us(self.now_us) % period_us;
        let after_us = match self.rng.within(0, 3) {
            0 => self.rng.within(lifetime_us / 4, 2 * lifetime_us),
            1 => rest_us + self.rng.within(0, lifetime_us),
            _ => rest_us + self.rng.within(0, 400),
        };
        self.at(after_us, Event::Drain);
        for node in 0..self.plan.nodes {
            let clock_us = self.nodes[node].clock_us(self.now_us);
            if !self.nodes[node].is_awake(self.now_us) {
                continue;
            }
            for key in 0..self.plan.keys {
                let good =
                    self.nodes[node].leases.get(&key).map_or(0, |one| one.spendable(clock_us));
                if good > 0 {
                    self.spend(node, key, good)?;
                }
            }
        }
        Ok(())
    }

    /// Until the next request. Around the end of a window there are more.
    fn pause_between(&mut self) -> u64 {
        let period_us = self.plan.params.period_us();
        let into_us = self.primaries[0].clock_us(self.now_us) % period_us;
        let near = into_us.min(period_us - into_us) < 1_000;
        let most_us = if near { 200 } else { 2 * self.plan.between_us };
        let next_us = self.rng.within(1, most_us);
        if into_us < period_us - 1_000 && into_us + next_us > period_us && self.rng.once_in(2) {
            return period_us - 1_000 - into_us;
        }
        let Some((on_us, off_us)) = self.plan.phases_us else { return next_us };
        // As many requests in less time.
        let next_us = (next_us * on_us / (on_us + off_us)).max(1);
        let phase_us = (self.now_us + next_us) % (on_us + off_us);
        if phase_us < on_us { next_us } else { next_us + on_us + off_us - phase_us }
    }

    fn spend(&mut self, node: usize, key: usize, cost: u64) -> Result<bool, String> {
        let now_us = self.now_us;
        let clock_us = self.nodes[node].clock_us(now_us);
        let lease = self.nodes[node].lease(key, now_us);
        let Some(spent) = lease.spend(clock_us, cost) else { return Ok(false) };
        self.nodes[node].totals.spent += cost;
        let start = self.nodes[node].starts;
        if self.rng.once_in(self.plan.faults.refuse) {
            let after_us = self.rng.within(0, 8_000);
            self.at(after_us, Event::Refused { node, start, key, spent });
            return Ok(true);
        }
        let home = self.homes[key].0;
        let store_us = self.primaries[home].clock_us(now_us);
        let place = self.oracles[key].admit(now_us, store_us, cost)?;
        if self.rng.once_in(self.plan.faults.cancel) {
            let after_us = self.rng.within(0, 2 * self.plan.terms.lifetime_us);
            self.at(after_us, Event::Cancelled { key, place, granted_us: spent.granted_us });
        }
        Ok(true)
    }

    /// Gives back what was spent, in the store itself.
    fn cancel(&mut self, key: usize, place: usize, granted_us: u64) {
        let primary = &mut self.primaries[self.homes[key].0];
        let clock_us = primary.clock_us(self.now_us);
        let units = self.oracles[key].cancel(place);
        let receipt = Receipt { cost: units, at_us: granted_us, ..Receipt::default() };
        for state in primary.cancel(key, units) {
            self.plan.terms.store_params.give_back(state, clock_us, units, &receipt);
        }
    }

    fn excuse(&mut self, excuses: Vec<Excuse>) {
        for (key, window, units) in excuses {
            self.oracles[key].excuse(window, units);
        }
    }

    /// What a process does now and then: returns, looks, forgets.
    fn tick(&mut self, node: usize) {
        let (now_us, terms) = (self.now_us, self.plan.terms_of(node));
        if !self.nodes[node].up {
            return;
        }
        self.at((terms.lifetime_us / 8).max(8_000), Event::Tick { node });
        if !self.nodes[node].is_awake(now_us) {
            return;
        }
        let gap_us = now_us - std::mem::replace(&mut self.nodes[node].ticked_us, now_us);
        self.nodes[node].longest_gap_us = self.nodes[node].longest_gap_us.max(gap_us);
        let clock_us = self.nodes[node].clock_us(now_us);
        for primary in 0..PRIMARIES {
            if self.nodes[node].watches[primary].is_check_due(clock_us, terms.grace_us) {
                self.look(node, primary);
            }
        }
        for key in 0..self.plan.keys {
            let evicts = self.rng.once_in(self.plan.faults.evict);
            let Some(lease) = self.nodes[node].leases.get_mut(&key) else { continue };
            let spent = lease.holds_nothing(clock_us) && !lease.should_return(clock_us);
            if lease.can_be_dropped(&terms, clock_us) || evicts && spent {
                self.nodes[node].drop_lease(key);
            } else if lease.should_return(clock_us) {
                self.send(node, key, (0, true));
            } else if self.plan.hoard && !lease.has_request_in_flight() {
                let share = self.plan.params.capacity() / self.plan.nodes as u64;
                let need = lease.spendable(clock_us) + share.min(lease.snapshot().left).max(1);
                let home = self.homes[key].0;
                if self.nodes[node].watches[home].trust(clock_us, terms.grace_us) == Trust::Trusted
                {
                    self.send(node, key, (need, false));
                }
            } else {
                self.want(node, key);
            }
        }
        self.stall(node);
    }

    /// A process that is late, but not too late for the store to remember its holders, returns all
    /// that it does not spend. Units of a window that has ended are of no use.
    fn check_stranded(&self) -> Result<(), String> {
        let (faults, terms) = (self.plan.faults, self.plan.terms);
        let excused = [
            faults.lose,
            faults.crash,
            faults.partition,
            faults.failover,
            faults.hand_over,
            faults.wipe,
            faults.step,
            faults.slot_move,
            faults.evict,
        ];
        let fixed = matches!(self.plan.params, LimitParams::FixedWindow(_));
        if excused.iter().sum::<u64>() > 0 || faults.delay_us > 2_000 || fixed {
            return Ok(());
        }
        let in_time = |node: &&Node| {
            // A process that has just woken may handle a request before it looks again.
            let gap_us = node.longest_gap_us.max(self.now_us.saturating_sub(node.ticked_us));
            gap_us < terms.lifetime_us + 400_000
        };
        match self.nodes.iter().filter(in_time).map(|node| node.totals.stranded).max() {
            Some(stranded) if stranded > 0 => Err(format!("{stranded} units are stranded")),
            _ => Ok(()),
        }
    }

    /// Holds after every step.
    fn check(&mut self) -> Result<(), String> {
        let now_us = self.now_us;
        for node in &mut self.nodes {
            node.check_totals()?;
        }
        self.check_stranded()?;
        for primary in 0..PRIMARIES {
            let stepping = self.plan.faults.step > 0;
            let excuses = self.primaries[primary].end_losses(now_us, &self.plan.terms, stepping)?;
            self.excuse(excuses);
            // Cancelled units are granted again, and stay granted to the node that spent them.
            if !self.lost && self.plan.faults.step + self.plan.faults.cancel == 0 {
                self.primaries[primary].check(&self.plan.terms)?;
            }
        }
        if self.late > self.pauses {
            return Err("more than one late admission for a pause".into());
        }
        for (key, (home, _)) in self.homes.iter().enumerate() {
            let Some(book) = self.primaries[*home].ledgers.get(&key).and_then(|l| l.book.as_ref())
            else {
                continue;
            };
            for lease in self.nodes.iter().filter_map(|node| node.leases.get(&key)) {
                let (holder, ledger, [granted, spent, returned]) = lease.totals();
                if spent + returned > granted {
                    return Err(format!("{spent} spent and {returned} returned of {granted}"));
                }
                let held = book.holders.get(&holder).filter(|_| ledger == book.ledger);
                // A clock that steps ahead may outlive a ledger.
                let kept = !self.lost && self.plan.faults.step == 0;
                let Some(held) = held.filter(|_| kept) else { continue };
                if granted > held.granted || held.returned > returned {
                    return Err(format!("{granted} received of {} granted", held.granted));
                }
            }
        }
        Ok(())
    }
}
