//! The Rust side: turns a plan into operations, and computes their expected rows.

use crate::plan::{MAX_US, Plan, Step};
use tollgate_core::algorithm::{
    CalendarWindow, Concurrency, DatedTat, FixedWindow, Gcra, LeakyBucket, SlidingLog,
    SlidingWindow, Tat, TokenBucket, calendar_window, fixed_window, sliding_window, token_bucket,
};
use tollgate_core::lua::{self, EXPIRY_LOG_EPOCH_US};
use tollgate_core::{
    Algorithm, CalendarUnit, Intent, InvalidParams, LimitParams, LimitState, OffsetChange, Outcome,
    Rate, Receipt, Zone,
};

/// Zones that change their offset twice a year, around the instants at which traces start.
static BERLIN: Zone = Zone::new(
    "Europe/Berlin",
    7_200,
    &[
        OffsetChange { from_s: 1_698_541_200, offset_s: 3_600 },
        OffsetChange { from_s: 1_711_846_800, offset_s: 7_200 },
        OffsetChange { from_s: 1_729_990_800, offset_s: 3_600 },
    ],
);

/// The arguments of one operation for the driver, and the expected row.
pub(crate) struct Played {
    pub(crate) arguments: [String; 9],
    pub(crate) expected: String,
}

/// Coverage of the traces of a run.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) decisions: u64,
    pub(crate) refusals: u64,
    pub(crate) costs_above_one: u64,
    pub(crate) operations: u64,
    pub(crate) at_a_boundary: u64,
    pub(crate) give_backs: u64,
    pub(crate) debts: u64,
    pub(crate) steps_back: u64,
    pub(crate) new_numbers: u64,
    pub(crate) redated: u64,
}

#[derive(Clone, Copy)]
struct Sizes {
    count: u64,
    period_us: u64,
    burst: u64,
    queue: u64,
}

/// The state of one key.
pub(crate) struct Model<'a> {
    algorithm: &'a str,
    sizes: Sizes,
    params: LimitParams,
    state: LimitState,
    now_us: u64,
    /// The instants at which the last answer changes.
    edges_us: Vec<u64>,
    remaining: u64,
    /// Each charge with its parameters.
    receipts: Vec<(Receipt, Sizes, LimitParams)>,
    coverage: &'a mut Coverage,
}

impl<'a> Model<'a> {
    pub(crate) fn new(algorithm: &'a str, plan: &Plan, coverage: &'a mut Coverage) -> Self {
        let sizes = Sizes::new(algorithm, plan.count, plan.period_us, plan.size);
        let params = sizes.params(algorithm, plan.start_us).unwrap();
        let (now_us, edges_us, receipts) = (plan.start_us, Vec::new(), Vec::new());
        let (state, remaining) = (LimitState::New, params.capacity());
        Self { algorithm, sizes, params, state, now_us, edges_us, remaining, receipts, coverage }
    }

    pub(crate) fn play(&mut self, step: Step) -> Played {
        self.hop(step.hop, step.raw);
        if step.op >= 240 {
            self.resize(step.raw);
        }
        // A caller usually knows the windows around its own clock, which may differ from the
        // store's.
        if self.algorithm == "calendar-window" && !step.raw.is_multiple_of(5) {
            let skew_us = step.raw % 7 / 6 * self.sizes.period_us;
            let at_us = self.now_us.saturating_sub(skew_us);
            self.params = self.sizes.params(self.algorithm, at_us).unwrap();
        }
        let amount = self.cost(step.cost, step.raw);
        match step.op {
            0..=24 => self.decide("peek", amount),
            25..=39 => {
                self.coverage.debts += 1;
                self.charge("charge", "-", amount)
            }
            40..=79 if !self.receipts.is_empty() => self.give_back(amount, step.raw),
            80..=94 => {
                let late = self.params.redate(&mut self.state, self.now_us);
                self.coverage.redated += u64::from(late);
                self.played("redate", 0, 0, &late.to_string(), None)
            }
            _ => self.decide("check", amount),
        }
    }

    fn decide(&mut self, op: &str, cost: u64) -> Played {
        let intent = if op == "check" { Intent::Take } else { Intent::Peek };
        let outcome = self.params.decide(&self.state, self.now_us, cost, intent);
        self.learn(&outcome, cost);
        let text = outcome_text(&outcome);
        match outcome.admitted && intent == Intent::Take {
            true => self.charge(op, &text, cost),
            false => self.played(op, cost, 0, &text, None),
        }
    }

    fn charge(&mut self, op: &str, outcome: &str, cost: u64) -> Played {
        let receipt = self.params.charge(&mut self.state, self.now_us, cost);
        self.receipts.push((receipt, self.sizes, self.params));
        self.played(op, cost, 0, outcome, Some(receipt))
    }

    /// Gives back under the parameters of the charge, like a store; sometimes under the current
    /// ones.
    fn give_back(&mut self, amount: u64, raw: u64) -> Played {
        let from = raw as usize % self.receipts.len();
        let (receipt, sizes, params) = self.receipts[from];
        let now = (self.sizes, self.params);
        if raw >> 60 != 0 {
            (self.sizes, self.params) = (sizes, params);
        }
        let units = amount.min(receipt.cost);
        self.params.give_back(&mut self.state, self.now_us, units, &receipt);
        self.coverage.give_backs += 1;
        let played = self.played("give", units, from + 1, "-", None);
        (self.sizes, self.params) = now;
        played
    }

    fn played(
        &mut self,
        op: &str,
        amount: u64,
        from: usize,
        outcome: &str,
        receipt: Option<Receipt>,
    ) -> Played {
        self.coverage.operations += 1;
        let Sizes { count, period_us, burst, queue } = self.sizes;
        let params = match self.params {
            LimitParams::CalendarWindow(_) => {
                let [_, limit, first_s, one_s, two_s, three_s] = lua::to_lua_params(&self.params);
                [limit, first_s, one_s, two_s, three_s]
            }
            _ => [count, period_us, burst, queue, 0],
        };
        // Amounts reach the mirror clamped: all amounts above 2^53 - 1 exceed every capacity.
        let words = [self.now_us, amount.min(MAX_US), from as u64].into_iter().chain(params);
        let mut arguments = [const { String::new() }; 9];
        op.clone_into(&mut arguments[0]);
        for (argument, word) in arguments[1..].iter_mut().zip(words) {
            *argument = word.to_string();
        }
        Played { arguments, expected: self.row(outcome, receipt) }
    }

    fn learn(&mut self, outcome: &Outcome, cost: u64) {
        let until = [outcome.retry_after_us, outcome.more_after_us, Some(outcome.reset_after_us)];
        self.edges_us = until
            .into_iter()
            .flatten()
            .map(|after_us| self.now_us.saturating_add(after_us))
            .collect();
        self.remaining = outcome.remaining;
        self.coverage.decisions += 1;
        self.coverage.refusals += u64::from(!outcome.admitted);
        self.coverage.costs_above_one += u64::from(cost > 1);
    }

    /// Moves the clock: usually not at all, or to an instant at which an answer changes, plus or
    /// minus a microsecond.
    fn hop(&mut self, hop: u8, raw: u64) {
        let (now_us, period_us) = (self.now_us, self.sizes.period_us);
        let next_us = (now_us / period_us).saturating_add(1).saturating_mul(period_us);
        let near = |at_us: u64| at_us.saturating_add(raw % 3).saturating_sub(1);
        let edge_us = match self.edges_us.len() as u64 {
            0 => next_us,
            len => self.edges_us[(raw / 3 % len) as usize],
        };
        let to_us = match hop {
            0..=119 => now_us,
            120..=174 => near(edge_us),
            175..=184 => near(next_us),
            185..=194 => near(now_us + period_us / self.sizes.count.max(1)),
            195..=209 => now_us + raw % (period_us + 1),
            210..=217 => now_us + raw % (3 * period_us),
            218..=221 => now_us + raw % (100 * period_us),
            222..=229 => now_us.saturating_sub(1),
            230..=241 => now_us.saturating_sub(raw % (period_us + 1)),
            242..=249 => now_us.saturating_sub(raw % (5 * period_us)),
            250..=251 => raw % (MAX_US + 1),
            252 => raw % 3,
            253 => MAX_US - raw % 3,
            254..=255 => near(next_us - period_us),
        };
        self.now_us = to_us.min(MAX_US);
        let beside = |edge_us: &u64| self.now_us.abs_diff(*edge_us) <= 1;
        let at_a_boundary = self.edges_us.iter().any(beside) || beside(&next_us);
        self.coverage.at_a_boundary += u64::from(at_a_boundary && to_us != now_us);
        self.coverage.steps_back += u64::from(to_us < now_us);
    }

    fn cost(&self, cost: u8, raw: u64) -> u64 {
        let capacity = self.params.capacity();
        match cost {
            0..=99 => 1,
            100..=109 => 0,
            110..=149 => raw % (capacity + 1),
            150..=169 => self.remaining,
            170..=194 => self.remaining + 1,
            195..=209 => capacity,
            210..=219 => capacity.saturating_sub(1),
            220..=229 => capacity + 1,
            230..=246 => 1 + raw % 12,
            247 => self.units_in(MAX_US + raw % MAX_US),
            248..=250 => raw >> (raw % 64),
            251 => MAX_US - raw % 3,
            252 => MAX_US + raw % 3,
            253..=255 => u64::MAX,
        }
    }

    /// The units that a rate yields in a time beyond 2^53.
    fn units_in(&self, span_us: u64) -> u64 {
        let units = u128::from(span_us) * u128::from(self.sizes.count);
        (units / u128::from(self.sizes.period_us)) as u64
    }

    /// Changes N, burst and queue, or slots and ttl. The period stays, since it belongs to the
    /// state.
    fn resize(&mut self, raw: u64) {
        let Sizes { count, mut period_us, .. } = self.sizes;
        let most = u64::from(u32::MAX);
        let count = match raw % 8 {
            0 => 0,
            1 => count.saturating_sub(1),
            2 => count + 1,
            3 => count / 2,
            4 => count * 2,
            5 => raw % 13,
            6 => raw >> 32,
            _ => count,
        };
        if self.algorithm == "concurrency" {
            period_us = (period_us / 2 + raw % (period_us + 1)).max(1_000);
        }
        let sizes = Sizes::new(self.algorithm, count.min(most), period_us, (raw >> 8) as u8);
        if let Ok(params) = sizes.params(self.algorithm, self.now_us) {
            (self.sizes, self.params) = (sizes, params);
            self.coverage.new_numbers += 1;
        }
    }

    fn row(&self, outcome: &str, receipt: Option<Receipt>) -> String {
        let receipt = receipt.map_or("-".to_owned(), |receipt| {
            // A ledger's mark may lie beyond 2^53, so its mirror counts from another epoch.
            let epoch = if self.keeps_a_ledger() { EXPIRY_LOG_EPOCH_US } else { 0 };
            let mark_us = i128::from(receipt.mark_us) - i128::from(epoch);
            format!("{} {mark_us} {}", receipt.at_us, receipt.mark_fraction)
        });
        let idle_us = self.params.idle_at_us(&self.state).min(MAX_US);
        format!("{outcome} | {receipt} | {} | {idle_us}", self.state_text())
    }

    fn keeps_a_ledger(&self) -> bool {
        matches!(self.algorithm, "sliding-log" | "concurrency")
    }

    fn state_text(&self) -> String {
        let state = match (&self.state, self.algorithm) {
            (LimitState::New, "fixed-window") => {
                LimitState::FixedWindow(fixed_window::State::default())
            }
            (LimitState::New, "calendar-window") => {
                LimitState::CalendarWindow(calendar_window::State::default())
            }
            (LimitState::New, "sliding-window") => {
                LimitState::SlidingWindow(sliding_window::State::default())
            }
            (LimitState::New, "token-bucket") => {
                LimitState::TokenBucket(token_bucket::State::default())
            }
            (LimitState::New, "gcra" | "leaky-bucket") => LimitState::Tat(DatedTat::default()),
            (LimitState::New, _) => LimitState::ExpiryLog(Default::default()),
            (state, _) => state.clone(),
        };
        match state {
            LimitState::FixedWindow(state) => format!("{} {}", state.index, state.count),
            LimitState::CalendarWindow(state) => format!("{} {}", state.start_s, state.count),
            LimitState::SlidingWindow(state) => {
                format!("{} {} {}", state.index, state.previous, state.current)
            }
            LimitState::TokenBucket(state) => {
                format!("{} {}", state.latest_us, tat_text(state.full))
            }
            LimitState::Tat(state) => format!("{} {}", tat_text(state.tat), state.ahead_us),
            LimitState::ExpiryLog(ledger) => {
                let dated = |us: u64| i128::from(us) - i128::from(EXPIRY_LOG_EPOCH_US);
                let total: u64 = ledger.entries().map(|entry| entry.1).sum();
                let mut text = format!("{} {total}", dated(ledger.latest_us()));
                for (end_us, units) in ledger.entries() {
                    text += &format!(" {}:{units}", dated(end_us));
                }
                text
            }
            other => panic!("{other:?} has no text"),
        }
    }
}

impl Sizes {
    /// Bursts and queues of several kinds, within the 100 years that a full bucket may take.
    fn new(algorithm: &str, count: u64, period_us: u64, size: u8) -> Self {
        let horizon_us = 36_525 * 86_400 * 1_000_000_u128;
        let most =
            (horizon_us * u128::from(count) / u128::from(period_us)).min(u32::MAX.into()) as u64;
        let burst = match size % 8 {
            0..=2 => count,
            3 => 1,
            4 => 10,
            5 => count / 2,
            6 => most,
            _ => most / 3,
        };
        let burst = burst.min(most).max(1);
        let queue = match size / 8 % 4 {
            _ if algorithm != "leaky-bucket" => 0,
            0 => 0,
            1 => 5,
            2 => count,
            _ => u64::from(u32::MAX),
        };
        Self { count, period_us, burst, queue: queue.min(most.saturating_sub(burst)) }
    }

    /// Calendar windows are those around `at_us`.
    fn params(self, algorithm: &str, at_us: u64) -> Result<LimitParams, InvalidParams> {
        let Self { count, period_us, burst, queue } = self;
        if algorithm == "concurrency" {
            return Concurrency::try_new(count, period_us).map(LimitParams::Concurrency);
        }
        let rate = Rate::try_new(count, period_us)?;
        Ok(match algorithm {
            "calendar-window" => {
                let unit = [CalendarUnit::Day, CalendarUnit::Week, CalendarUnit::Month];
                let unit = unit[(period_us % 3) as usize];
                LimitParams::CalendarWindow(CalendarWindow::new(rate.count(), unit, &BERLIN))
                    .resolve_calendar(at_us)
            }
            "fixed-window" => LimitParams::FixedWindow(FixedWindow::new(rate)),
            "sliding-window" => LimitParams::SlidingWindow(SlidingWindow::new(rate)),
            "sliding-log" => LimitParams::SlidingLog(SlidingLog::new(rate)),
            "token-bucket" => LimitParams::TokenBucket(TokenBucket::try_new(rate, Some(burst))?),
            "gcra" => LimitParams::Gcra(Gcra::try_new(rate, Some(burst))?),
            "leaky-bucket" => {
                LimitParams::LeakyBucket(LeakyBucket::try_new(rate, Some(burst), Some(queue))?)
            }
            other => panic!("no algorithm {other}"),
        })
    }
}

/// In the mirror, durations saturate at 2^53 - 1. Rust can represent a clock that fell back by 285
/// years.
fn outcome_text(outcome: &Outcome) -> String {
    let text = |us: Option<u64>| us.map_or("-".to_owned(), |us| us.min(MAX_US).to_string());
    format!(
        "{} {} {} {} {} {} {}",
        outcome.admitted,
        outcome.limit,
        outcome.remaining,
        text(outcome.retry_after_us),
        text(Some(outcome.reset_after_us)),
        text(Some(outcome.delay_us)),
        text(outcome.more_after_us),
    )
}

fn tat_text(tat: Tat) -> String {
    format!("{}+{}/{}", tat.us, tat.fraction, tat.count)
}
