//! What nodes and stores say to each other, and what becomes of it on the way.

use super::{Answer, Call, Event, PATIENCE_US, World};
use crate::node::Undecided;
use tollgate_store::lease::{LedgerReply, SeenMarker, TakeoverWait, Trust};

impl World {
    /// Asks for more where that is due.
    pub(super) fn want(&mut self, node: usize, key: usize) {
        let (now_us, terms) = (self.now_us, self.plan.terms_of(node));
        let home = self.homes[key].0;
        let clock_us = self.nodes[node].clock_us(now_us);
        let waiting = self.nodes[node].waiting.get(&key);
        let need = waiting.and_then(|all| all.first()).map_or(0, |one| one.0);
        let may_ask =
            self.nodes[node].watches[home].trust(clock_us, terms.grace_us) == Trust::Trusted;
        let lease = self.nodes[node].lease(key, now_us);
        if may_ask && lease.should_ask(clock_us, need) {
            self.send(node, key, (need, false));
        } else if self.nodes[node].watches[home].is_check_due(clock_us, terms.grace_us) {
            self.look(node, home);
        }
    }

    pub(super) fn send(&mut self, node: usize, key: usize, what: (u64, bool)) {
        let (now_us, terms) = (self.now_us, self.plan.terms_of(node));
        let clock_us = self.nodes[node].clock_us(now_us);
        let (renewed, number) = (self.nodes[node].holder(), self.nodes[node].flight());
        let lease = self.nodes[node].lease(key, now_us);
        let ask = lease.start_request(&terms, clock_us, what, number, renewed);
        self.calls += 1;
        let start = self.nodes[node].starts;
        self.at(PATIENCE_US, Event::Overdue { node, start, key, number });
        self.post(node, self.homes[key].0, Call::Ask { key, number, ask });
    }

    pub(super) fn look(&mut self, node: usize, primary: usize) {
        if self.nodes[node].looking[primary].is_none() {
            self.claim(node, primary, None);
        }
    }

    fn claim(&mut self, node: usize, primary: usize, claim: Option<(u128, u64)>) {
        let start = self.nodes[node].starts;
        let sent_us = self.nodes[node].clock_us(self.now_us);
        let number = self.nodes[node].flight();
        self.nodes[node].looking[primary] = Some(number);
        self.at(PATIENCE_US, Event::Unlooked { node, start, primary, number });
        self.post(node, primary, Call::Look { sent_us, claim });
    }

    /// A mark of another server keeps its age if that server says that nothing was lost, and the
    /// node knows the age. Without a word of it, a grace period begins after a moment.
    fn take_over(&mut self, node: usize, primary: usize, foreign: u128) {
        let clock_us = self.nodes[node].clock_us(self.now_us);
        let shown = (foreign, self.primaries[primary].run);
        let waited_us = self.nodes[node].takeovers[primary].waited_us(shown, clock_us);
        self.nodes[node].foreign[primary] = Some(foreign);
        let age_us = self.nodes[node].watches[primary].marker_age_us(foreign, clock_us);
        let says = self.primaries[primary].is_handed_over(foreign) && !self.rng.once_in(6);
        match age_us {
            Some(age_us) if says => self.claim(node, primary, Some((foreign, age_us))),
            _ if waited_us > PATIENCE_US => self.claim(node, primary, Some((foreign, waited_us))),
            _ => self.nodes[node].watches[primary].connection_lost(),
        }
    }

    pub(super) fn post(&mut self, node: usize, primary: usize, what: Call) {
        let run = *self.nodes[node].follows[primary].get_or_insert(self.primaries[primary].run);
        let start = self.nodes[node].starts;
        self.travel(node, Event::Arrives { node, start, primary, run, what });
    }

    pub(super) fn arrive(
        &mut self,
        (node, start): (usize, u64),
        (primary, run): (usize, u64),
        what: Call,
    ) -> Result<(), String> {
        // Another server has other connections. A request that was not sent yet goes to it.
        let same_server = self.primaries[primary].run == run;
        // A server that handed over says who is the primary now.
        let redirects = self.primaries[primary].predecessor == Some(run);
        let waits = match what {
            Call::Decide { .. } => true,
            Call::Ask { .. } => redirects,
            Call::Look { .. } => false,
        };
        let run = self.primaries[primary].run;
        if !same_server && redirects && self.is_same(node, start) {
            self.nodes[node].reconnect(primary);
        }
        if !same_server && !waits {
            return Ok(());
        }
        let (answer, sent_us) = match what {
            Call::Look { sent_us, claim } => {
                (Answer::Seen(self.primaries[primary].look(self.now_us, claim)), sent_us)
            }
            Call::Decide { key, cost, number, sent_us } => {
                if !self.is_served(key, primary) || !self.decide(node, key, cost)? {
                    return Ok(());
                }
                let store = &self.primaries[primary];
                let decided_us = (self.now_us, store.clock_us(self.now_us));
                let mark = store.mark().map_or(SeenMarker::Missing, SeenMarker::Id);
                // The slot of the mark may move at any time.
                let moved = self.rng.once_in(4);
                let (times_us, mark) =
                    ((sent_us, 0), if moved { SeenMarker::NotRead } else { mark });
                let all = Undecided {
                    key,
                    cost,
                    number,
                    primary,
                    times_us,
                    decided_us,
                    mark,
                    same_server,
                };
                (Answer::Decided(all), 0)
            }
            Call::Ask { key, number, ask } => {
                if !self.is_served(key, primary) {
                    return Ok(());
                }
                let keep_past = self.plan.faults.failover > 0;
                let store = &mut self.primaries[primary];
                let terms = self.plan.terms_of(node);
                let (reply, excuses) = store.ask(self.now_us, key, &terms, &ask, keep_past);
                self.rollbacks += u64::from(reply.rolled_back);
                if reply.rolled_back && !self.lost && self.plan.faults.step == 0 {
                    return Err(format!("a loss where nothing was lost: {ask:?}"));
                }
                self.excuse(excuses);
                (Answer::Reply { key, number, reply }, 0)
            }
        };
        self.travel(node, Event::Answers { node, start, primary, run, sent_us, what: answer });
        Ok(())
    }

    fn is_served(&self, key: usize, primary: usize) -> bool {
        let (home, gone_until_us) = self.homes[key];
        home == primary && self.now_us >= gone_until_us
    }

    /// The store decides by itself. Where the limit fails open, the request counts, whatever
    /// becomes of the answer. Returns whether the node has to see first if the store lost nothing.
    fn decide(&mut self, node: usize, key: usize, cost: u64) -> Result<bool, String> {
        let (direct, now_us) = (self.plan.direct, self.now_us);
        let terms = self.plan.terms_of(node);
        let store = &mut self.primaries[self.homes[key].0];
        let (admitted, excuses) = store.decide(now_us, key, &terms, cost, direct);
        self.excuse(excuses);
        if admitted && direct {
            let clock_us = self.primaries[self.homes[key].0].clock_us(now_us);
            self.oracles[key].admit(now_us, clock_us, cost)?;
            self.decided += cost;
        }
        Ok(admitted && !direct)
    }

    /// A limit that fails closed admits what a store decided that had lost nothing.
    fn believe(&mut self, node: usize, one: Undecided) -> Result<(), String> {
        let grace_us = self.plan.terms_of(node).grace_us;
        let watch = &mut self.nodes[node].watches[one.primary];
        match watch.is_decision_valid(one.times_us, one.mark, one.same_server, grace_us) {
            None => {
                self.nodes[node].undecided.push(one);
                self.look(node, one.primary);
            }
            Some(false) => watch.connection_lost(),
            Some(true) => {
                let (at_us, clock_us) = one.decided_us;
                self.oracles[one.key].admit(at_us, clock_us, one.cost)?;
                self.decided += one.cost;
            }
        }
        Ok(())
    }

    /// A message may be lost, late or double.
    fn travel(&mut self, node: usize, event: Event) {
        for _ in 0..=u64::from(self.rng.once_in(self.plan.faults.double)) {
            if self.nodes[node].is_cut_off(self.now_us) || self.rng.once_in(self.plan.faults.lose) {
                continue;
            }
            let after_us = self.rng.within(50, self.plan.faults.delay_us);
            self.at(after_us, event);
        }
    }

    pub(super) fn answer(
        &mut self,
        (node, start): (usize, u64),
        (primary, run): (usize, u64),
        sent_us: u64,
        what: Answer,
    ) -> Result<(), String> {
        // A connection that was lost brings nothing any more.
        if !self.is_same(node, start) || self.primaries[primary].run != run {
            return Ok(());
        }
        let now_us = self.now_us;
        let wakes_us = self.nodes[node].paused_until_us;
        if now_us < wakes_us {
            let event = Event::Answers { node, start, primary, run, sent_us, what };
            self.at(wakes_us - now_us, event);
            return Ok(());
        }
        let clock_us = self.nodes[node].clock_us(now_us);
        match what {
            Answer::Seen(Err(foreign)) => {
                if self.nodes[node].looking[primary].take().is_some() {
                    self.take_over(node, primary, foreign);
                }
            }
            Answer::Seen(Ok(mut sighting)) => {
                if self.nodes[node].looking[primary].take().is_none() {
                    return Ok(());
                }
                sighting.replaced = self.nodes[node].foreign[primary].take();
                self.nodes[node].takeovers[primary] = TakeoverWait::default();
                if self.nodes[node].watches[primary].record_marker(sent_us, clock_us, &sighting) {
                    for key in 0..self.plan.keys {
                        let held = self.nodes[node].leases.contains_key(&key);
                        if held && self.homes[key].0 == primary {
                            self.send(node, key, (0, true));
                        }
                    }
                }
                for (key, number, came_us, reply) in std::mem::take(&mut self.nodes[node].doubtful)
                {
                    self.consider(node, key, number, came_us, reply)?;
                }
                for one in std::mem::take(&mut self.nodes[node].undecided) {
                    self.believe(node, one)?;
                }
            }
            Answer::Reply { key, number, reply } => {
                self.consider(node, key, number, clock_us, reply)?;
            }
            Answer::Decided(one) if !self.nodes[node].asked.remove(&one.number) => {}
            Answer::Decided(one) => {
                self.believe(node, Undecided { times_us: (one.times_us.0, clock_us), ..one })?;
            }
        }
        Ok(())
    }

    /// What a store grants that may be another one is not taken before it has been looked at.
    fn consider(
        &mut self,
        node: usize,
        key: usize,
        number: u64,
        came_us: u64,
        reply: LedgerReply,
    ) -> Result<(), String> {
        let (home, grace_us) = (self.homes[key].0, self.plan.terms_of(node).grace_us);
        let lease = self.nodes[node].leases.get(&key);
        if let Some(asked_us) = lease.and_then(|lease| lease.new_grant_sent_us(number, &reply)) {
            let watch = self.nodes[node].watches[home];
            match watch.is_grant_valid((asked_us, came_us), reply.age_us, grace_us) {
                None => {
                    self.nodes[node].doubtful.push((key, number, came_us, reply));
                    self.look(node, home);
                    return Ok(());
                }
                Some(false) => {
                    self.discard(node, key, number, &reply);
                    return Ok(());
                }
                Some(true) => {}
            }
        }
        self.hear(node, key, number, &reply)
    }

    /// No answer came in time, or it could not be verified.
    pub(super) fn give_up(&mut self, node: usize, key: usize, number: u64) {
        let doubtful = &mut self.nodes[node].doubtful;
        let doubted = doubtful.extract_if(.., |one| (one.0, one.1) == (key, number)).last();
        match doubted {
            Some((.., reply)) => self.discard(node, key, number, &reply),
            None => {
                if let Some(lease) = self.nodes[node].leases.get_mut(&key) {
                    lease.request_failed(number);
                }
            }
        }
    }

    fn discard(&mut self, node: usize, key: usize, number: u64, reply: &LedgerReply) {
        let (terms, clock_us) = (self.plan.terms_of(node), self.nodes[node].clock_us(self.now_us));
        let renewed = self.nodes[node].holder();
        let Some(lease) = self.nodes[node].leases.get_mut(&key) else { return };
        let result = lease.discard_reply(&terms, clock_us, number, reply, renewed);
        self.nodes[node].totals.granted += result.granted;
        self.nodes[node].totals.returned += result.returned;
    }

    fn hear(
        &mut self,
        node: usize,
        key: usize,
        number: u64,
        reply: &LedgerReply,
    ) -> Result<(), String> {
        let (now_us, terms) = (self.now_us, self.plan.terms_of(node));
        let clock_us = self.nodes[node].clock_us(now_us);
        let renewed = self.nodes[node].holder();
        let Some(lease) = self.nodes[node].leases.get_mut(&key) else { return Ok(()) };
        let result = lease.apply_reply(&terms, clock_us, number, reply, renewed);
        self.nodes[node].totals.granted += result.granted;
        self.nodes[node].totals.returned += result.returned;
        let waiting = self.nodes[node].waiting.remove(&key).unwrap_or_default();
        let mut kept = Vec::new();
        for (cost, gives_up_us) in waiting {
            if now_us < gives_up_us && !self.spend(node, key, cost)? {
                kept.push((cost, gives_up_us));
            }
        }
        // One who was there when nothing was granted has been refused.
        if self.nodes[node].leases[&key].spendable(clock_us) > 0 && !kept.is_empty() {
            self.nodes[node].waiting.insert(key, kept);
            self.want(node, key);
        }
        self.stall(node);
        Ok(())
    }
}
