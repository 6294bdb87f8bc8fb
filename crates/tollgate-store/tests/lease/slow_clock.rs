//! The worst that is allowed, on purpose: hold everything to the last instant, spend it all, and
//! take what has come back meanwhile.

use crate::oracle::Oracle;
use crate::plan::any_numbers;
use crate::rng::Rng;
use tollgate_core::{Algorithm, Intent, LimitParams};
use tollgate_store::lease::{Holder, Lease, LeaseTerms, Ledger};

const EPOCH_US: u64 = 1_700_000_000_000_000;
/// As slow as a clock may be.
const SLOW_PPM: u64 = 900;

struct LeaseDriver {
    terms: LeaseTerms,
    ledger: Ledger,
    lease: Lease,
    oracle: Oracle,
    now_us: u64,
    asked: u64,
}

impl LeaseDriver {
    fn clock_us(&self) -> u64 {
        let passed_us = self.now_us - EPOCH_US;
        passed_us - passed_us * SLOW_PPM / 1_000_000
    }

    fn holder(&mut self) -> Holder {
        self.asked += 1;
        Holder { process: [7; 4], number: self.asked }
    }

    /// What is left, and what was granted without an answer: no holder can know better.
    fn there_is(&self) -> u64 {
        let (holder, ledger, [known, ..]) = self.lease.totals();
        let state = self.ledger.state.clone().unwrap_or_default();
        let left = self.terms.store_params.decide(&state, self.now_us, 0, Intent::Peek).remaining;
        let book = self.ledger.book.as_ref();
        let held = book.and_then(|book| {
            book.holders.get(&holder).filter(|_| ledger == book.ledger || ledger == 0)
        });
        left + held.map_or(0, |held| held.granted.saturating_sub(known))
    }

    /// Asks for all that there is until there is no more; messages take no time.
    fn take(&mut self) {
        for _ in 0..64 {
            let (clock_us, renewed) = (self.clock_us(), self.holder());
            let need = self.lease.spendable(clock_us) + self.there_is().max(1);
            let number = self.asked;
            let ask =
                self.lease.start_request(&self.terms, clock_us, (need, false), number, renewed);
            let reply = self.ledger.handle(self.now_us, 1_000_000, &self.terms, &ask);
            let renewed = self.holder();
            self.lease.apply_reply(&self.terms, clock_us, number, &reply, renewed);
            if reply.left == 0 {
                return;
            }
        }
    }

    /// Asks for all that there is and does not get the answer.
    fn ask_in_vain(&mut self) {
        let (clock_us, renewed) = (self.clock_us(), self.holder());
        let (number, need) = (self.asked, self.lease.spendable(clock_us) + self.there_is().max(1));
        let ask = self.lease.start_request(&self.terms, clock_us, (need, false), number, renewed);
        self.ledger.handle(self.now_us, 1_000_000, &self.terms, &ask);
        self.lease.request_failed(number);
    }

    fn spend(&mut self) -> Result<(), String> {
        let clock_us = self.clock_us();
        let good = self.lease.spendable(clock_us);
        if good > 0 && self.lease.spend(clock_us, good).is_some() {
            self.oracle.admit(self.now_us, self.now_us, good)?;
        }
        Ok(())
    }

    /// The last instant at which something held is good.
    fn wait(&mut self) {
        let (mut low, mut high) = (self.now_us, self.now_us + 2 * self.terms.lifetime_us);
        while low + 1 < high {
            self.now_us = low.midpoint(high);
            match self.lease.spendable(self.clock_us()) {
                0 => high = self.now_us,
                _ => low = self.now_us,
            }
        }
        self.now_us = low;
    }
}

fn hold_out(params: LimitParams, terms: LeaseTerms, rng: &mut Rng) -> Result<(), String> {
    let mut miser = LeaseDriver {
        terms,
        ledger: Ledger::default(),
        lease: Lease::new(Holder::default(), 0),
        oracle: Oracle::new(params, false),
        now_us: EPOCH_US,
        asked: 0,
    };
    let period_us = params.period_us();
    for _ in 0..12 {
        // A little before a window ends, or before the units would.
        let rest_us = period_us - miser.now_us % period_us;
        miser.now_us += match rng.within(0, 2) {
            0 => rng.within(1, 2 * period_us),
            1 => rest_us + period_us - rng.within(1, 1_000),
            _ => rest_us + period_us.saturating_sub(terms.lifetime_us + rng.within(0, 1_000)),
        };
        if rng.once_in(2) {
            miser.ask_in_vain();
            miser.now_us += rng.within(1, terms.lifetime_us);
        }
        miser.take();
        miser.wait();
        miser.spend()?;
        miser.take();
        miser.spend()?;
    }
    Ok(())
}

#[test]
fn a_holder_that_spends_to_the_last_instant_stays_within_the_limit() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let (params, lifetime_us) = any_numbers(&mut rng);
        let Some(terms) = LeaseTerms::for_limit(&params, lifetime_us, 2, 2 * lifetime_us) else {
            continue;
        };
        let outcome = hold_out(params, terms, &mut rng);
        assert_eq!(outcome, Ok(()), "seed {seed}: {} {params:?}", params.capacity());
    }
}
