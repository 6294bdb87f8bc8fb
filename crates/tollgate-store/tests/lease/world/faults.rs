//! What happens to nodes and stores.

use super::{Event, PRIMARIES, World};
use crate::store::Lost;
use tollgate_core::{Algorithm, LimitParams};

impl World {
    pub(crate) fn fault(&mut self) {
        self.at(50_000, Event::Fault);
        let (faults, terms) = (self.plan.faults, self.plan.terms);
        let node = self.rng.within(0, self.plan.nodes as u64 - 1) as usize;
        let primary = self.rng.within(0, PRIMARIES as u64 - 1) as usize;
        let lifetime_us = terms.lifetime_us;
        if self.rng.once_in(faults.crash) && self.nodes[node].up {
            self.nodes[node].crash();
            self.deaths.push(self.now_us);
            let after_us = self.rng.within(1_000, 2 * lifetime_us);
            self.at(after_us, Event::Restart { node });
        }
        if self.rng.once_in(faults.pause) && self.nodes[node].is_awake(self.now_us) {
            self.pause(node);
        }
        if self.rng.once_in(faults.partition) {
            let for_us = self.rng.within(1_000, 3 * lifetime_us);
            self.nodes[node].cut_off_until_us = self.now_us + for_us;
        }
        if self.rng.once_in(faults.failover) {
            let lag_us = self.rng.within(0, 200_000);
            let run = self.rng.next();
            self.lose(primary, Lost::Last(lag_us), run);
            if faults.step > 0 && self.rng.once_in(2) {
                // The clock of another server.
                let by_us = self.any_step();
                self.step_clock(primary, by_us);
            }
            self.expect_said(primary);
            self.nodes.iter_mut().for_each(|node| node.reconnect(primary));
        }
        if self.rng.once_in(faults.hand_over) {
            // Nodes find out when they next ask the old one.
            let run = self.rng.next();
            self.primaries[primary].hand_over(run);
        }
        if self.rng.once_in(faults.wipe) {
            let run = self.primaries[primary].run;
            let what =
                self.rng.pick(&[Lost::All, Lost::All, Lost::Keys, Lost::Books, Lost::States]);
            self.lose(primary, what, run);
            if matches!(what, Lost::All) {
                self.expect_said(primary);
            }
        }
        if self.rng.once_in(faults.step) {
            self.step_clocks();
        }
        if self.rng.once_in(faults.slot_move) {
            let key = self.rng.within(0, self.plan.keys as u64 - 1) as usize;
            let gap_us = self.rng.within(0, 60_000);
            let to = 1 - self.homes[key].0;
            self.homes[key].1 = self.now_us + gap_us + 1;
            self.at(gap_us, Event::Moved { key, to });
        }
    }

    fn lose(&mut self, primary: usize, what: Lost, run: u64) {
        if self.trace {
            println!("          primary {primary} loses {what:?}");
        }
        let excuses = self.primaries[primary].lose(self.now_us, what, run, &self.plan.terms);
        self.excuse(excuses);
        self.lost = true;
    }

    /// A node that saw the last totals of a lost ledger has to report them in time.
    fn expect_said(&mut self, primary: usize) {
        let faults = self.plan.faults;
        let kept_from_it =
            [faults.crash, faults.pause, faults.stall, faults.partition, faults.evict];
        if kept_from_it.iter().sum::<u64>() + faults.lose + faults.slot_move > 0 {
            return;
        }
        let leases = self.nodes.iter().flat_map(|node| &node.leases);
        let seen = leases.map(|(key, lease)| {
            let (ledger, summary) = lease.summary();
            (*key, ledger, (summary.granted, summary.returned))
        });
        let seen: Vec<_> = seen.collect();
        let until_us = self.now_us + self.plan.terms.grace_us;
        self.primaries[primary].expect_said(until_us, &seen);
    }

    /// A process stops after a step.
    pub(super) fn stall(&mut self, node: usize) {
        if self.rng.once_in(self.plan.faults.stall) && self.nodes[node].is_awake(self.now_us) {
            self.pause(node);
        }
    }

    /// A process stops, perhaps between looking at the clock and letting one request pass.
    fn pause(&mut self, node: usize) {
        let for_us = self.rng.within(1_000, 3 * self.plan.terms.lifetime_us);
        let clock_us = self.nodes[node].clock_us(self.now_us);
        self.pauses += 1;
        if let Some(lease) = self.nodes[node].leases.get_mut(&0)
            && self.rng.once_in(2)
            && lease.spend(clock_us, 1).is_some()
        {
            self.nodes[node].totals.spent += 1;
            self.late += 1;
        }
        self.nodes[node].paused_until_us = self.now_us + for_us;
    }

    /// The clocks of the primaries step together, as machines do that follow one source, or one
    /// steps alone.
    fn step_clocks(&mut self) {
        let by_us = self.any_step();
        let together = self.rng.once_in(2);
        let alone = self.rng.within(0, PRIMARIES as u64 - 1) as usize;
        for primary in (0..PRIMARIES).filter(|one| together || *one == alone) {
            self.step_clock(primary, by_us);
        }
    }

    fn any_step(&mut self) -> i64 {
        let by_us = self.rng.within(1_000, 3_000_000) as i64;
        if self.rng.once_in(2) { by_us } else { -by_us }
    }

    fn step_clock(&mut self, primary: usize, by_us: i64) {
        self.primaries[primary].step(by_us);
        for key in 0..self.plan.keys {
            if self.homes[key].0 == primary {
                self.excuse_step(key, by_us);
            }
        }
    }

    /// What a key may admit on top if the clock that it is decided by steps ahead.
    ///
    /// Units that return with time return sooner: at most `rate x step`, and no more than the limit
    /// holds at once. A fixed window holds twice its limit around a boundary: a step can cut short
    /// the window that it leaves, and the window that it lands in.
    pub(super) fn excuse_step(&mut self, key: usize, by_us: i64) {
        let params = &self.plan.params;
        let most = match params {
            LimitParams::FixedWindow(_) => 2 * params.capacity(),
            _ => params.capacity(),
        };
        let sooner = (params.count() * by_us.max(0) as u64).div_ceil(params.period_us());
        self.oracles[key].excuse(None, sooner.min(most));
    }
}
