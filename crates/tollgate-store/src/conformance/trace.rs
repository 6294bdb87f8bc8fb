//! Random traces: a store must answer like the model.

use super::driver::{ChargeSpec, StoreDriver};
use super::model::Model;
use crate::{Change, Store};
use tollgate_core::algorithm::{
    CalendarWindow, Concurrency, FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow,
    TokenBucket,
};
use tollgate_core::{
    CalendarUnit, Intent, InvalidParams, LimitParams, OffsetChange, Penalty, Rate, Receipt, Zone,
};

/// Every algorithm with a capacity of `count`, per ten seconds if it has a period.
pub fn algorithms(count: u64) -> impl Iterator<Item = LimitParams> {
    let all = |count: u64| -> Result<[LimitParams; 7], InvalidParams> {
        let rate = Rate::try_new(count, 10_000_000)?;
        Ok([
            LimitParams::FixedWindow(FixedWindow::new(rate)),
            LimitParams::SlidingWindow(SlidingWindow::new(rate)),
            LimitParams::SlidingLog(SlidingLog::new(rate)),
            LimitParams::TokenBucket(TokenBucket::try_new(rate, None)?),
            LimitParams::Gcra(Gcra::try_new(rate, None)?),
            LimitParams::LeakyBucket(LeakyBucket::try_new(rate, Some(1), Some(count - 1))?),
            LimitParams::Concurrency(Concurrency::try_new(count, 10_000_000)?),
        ])
    };
    all(count).into_iter().flatten()
}

/// Berlin, around four changes of its clocks.
static BERLIN: Zone = Zone::new(
    "Europe/Berlin",
    7_200,
    &[
        OffsetChange { from_s: 1_698_541_200, offset_s: 3_600 },
        OffsetChange { from_s: 1_711_846_800, offset_s: 7_200 },
        OffsetChange { from_s: 1_729_990_800, offset_s: 3_600 },
        OffsetChange { from_s: 1_743_296_400, offset_s: 7_200 },
    ],
);

/// Calendar windows with a capacity of `count`.
pub fn calendars(count: u32) -> impl Iterator<Item = LimitParams> {
    let all = [
        (CalendarUnit::Day, &BERLIN),
        (CalendarUnit::Week, &BERLIN),
        (CalendarUnit::Month, &BERLIN),
        (CalendarUnit::Month, Zone::UTC),
    ];
    let params = move |(unit, zone)| CalendarWindow::new(count, unit, zone);
    all.into_iter().map(params).map(LimitParams::CalendarWindow)
}

/// All [`algorithms`], and calendar days.
pub(super) fn all_algorithms(count: u32) -> impl Iterator<Item = LimitParams> {
    algorithms(count.into()).chain(calendars(count).take(1))
}

/// A name for each of [`all_algorithms`].
pub(super) fn algorithm_name(params: &LimitParams) -> &'static str {
    match params {
        LimitParams::CalendarWindow(_) => "calendar-window",
        other => other.algorithm(),
    }
}

/// [`traces`] for calendar windows, over days and weeks.
pub async fn calendar_traces<S: Store>(store: &S, seed: u64, steps: usize) {
    let kinds = |tier| calendars(tier).collect();
    run_trace(store, seed, steps, TraceRng { state: 0, kinds, pace: 40_000, keys: FEW }).await;
}

/// Runs `steps` random requests, changes and resets over a few keys, limits, tiers and modes. Every
/// answer must equal the [`Model`]'s. Every fourth seed has many keys, so that tables grow.
pub async fn traces<S: Store>(store: &S, seed: u64, steps: usize) {
    let kinds = |tier| algorithms(u64::from(tier)).collect();
    let keys = if seed.is_multiple_of(4) { MANY } else { FEW };
    run_trace(store, seed, steps, TraceRng { state: 0, kinds, pace: 1, keys }).await;
}

async fn run_trace<S: Store>(store: &S, seed: u64, steps: usize, mut rng: TraceRng) {
    rng.state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut driver = StoreDriver::new(store);
    let mut model = Model::default();
    let mut receipts: Vec<(ChargeSpec<'_>, Receipt)> = Vec::new();
    for step in 0..steps {
        let context = format!("seed {seed}, step {step}");
        driver.now_us = rng.next_instant(driver.now_us);
        match rng.below(20) {
            0 if !receipts.is_empty() => {
                let (line, receipt) =
                    receipts.swap_remove(rng.below(receipts.len() as u64) as usize);
                let units = rng.below(receipt.cost + 1);
                let change = Change::GiveBack { units, receipt, charged_params: line.params };
                // The limit may have other params by now, which the row must use.
                adjust(&driver, &mut model, rng.retier(line), change, &context).await;
            }
            1 => {
                let (line, units) = (rng.line(), rng.below(30));
                adjust(&driver, &mut model, line, Change::Owe { units }, &context).await;
            }
            // Stores forget resets in time, and at a high pace the clock steps back by more.
            2 if rng.pace == 1 => {
                let line = rng.line();
                model.reset(driver.now_us, &line);
                driver.reset(&line).await;
            }
            _ => {
                let lines = rng.lines();
                let intent = if rng.below(5) == 0 { Intent::Peek } else { Intent::Take };
                let expected = model.decide(driver.now_us, &lines, intent);
                let (admitted, rows) = driver.ask(&lines, intent).await;
                assert_eq!(
                    format!("{:?}", (admitted, &rows)),
                    format!("{expected:?}"),
                    "{context}: {intent:?} {lines:?}"
                );
                let taken = lines.iter().zip(&rows);
                receipts.extend(taken.filter_map(|(line, row)| Some((*line, row.receipt?))));
            }
        }
    }
}

/// Applies a change, and compares the row with that of the model.
async fn adjust<S: Store>(
    driver: &StoreDriver<'_, S>,
    model: &mut Model,
    line: ChargeSpec<'_>,
    change: Change,
    context: &str,
) {
    let expected = model.adjust(driver.now_us, &line, change);
    let rows = driver.adjust(&[(line, change)]).await;
    assert_eq!(format!("{:?}", rows[0]), format!("{expected:?}"), "{context}: {change:?}");
}

/// A small random generator, so that third parties need no other crate.
#[derive(Debug)]
struct TraceRng {
    state: u64,
    /// The limits to draw from, with this capacity.
    kinds: fn(u32) -> Vec<LimitParams>,
    /// The factor by which time passes faster.
    pace: u64,
    /// The number of keys to draw from: [`FEW`] or [`MANY`].
    keys: usize,
}

/// Keys of one letter.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
/// Three keys, one of them long, and the letters.
const MANY: usize = FEW + LETTERS.len();
/// Few enough that requests repeat keys often.
const FEW: usize = 3;

impl TraceRng {
    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % bound
    }

    /// Mostly a little later, sometimes much later, sometimes earlier. With many keys time does not
    /// step back, because growing tables drop idle state.
    fn next_instant(&mut self, now_us: u64) -> u64 {
        match self.below(40) {
            0 => now_us + self.below(40_000_000 * self.pace),
            1 if self.keys == FEW => now_us - self.below(60_000_000 * self.pace),
            2..8 => now_us,
            _ => now_us + self.below(400_000 * self.pace),
        }
    }

    /// The charge in a random tier.
    fn retier(&mut self, line: ChargeSpec<'static>) -> ChargeSpec<'static> {
        let tier = [3, 7, 10][self.below(3) as usize];
        let params = (self.kinds)(tier).into_iter().nth((line.limit - 100) as usize);
        ChargeSpec { params: params.unwrap_or(line.params), ..line }
    }

    /// One to four charges for distinct limits.
    fn lines(&mut self) -> Vec<ChargeSpec<'static>> {
        let mut lines: Vec<ChargeSpec<'static>> = Vec::new();
        for _ in 0..=self.below(4) {
            let line = self.line();
            if lines.iter().all(|other| (other.limit, other.key) != (line.limit, line.key)) {
                lines.push(line);
            }
        }
        lines
    }

    /// A charge of any algorithm, in one of three tiers. Two tiers leave fractions of a
    /// microsecond.
    fn line(&mut self) -> ChargeSpec<'static> {
        let limit = self.below((self.kinds)(3).len() as u64);
        let tier = [3, 7, 10][self.below(3) as usize];
        let params = (self.kinds)(tier)[limit as usize];
        let key = match self.below(self.keys as u64) as usize {
            0 => "ann",
            1 => "bob",
            2 => "a longer key than most, of more than sixteen bytes",
            letter => &LETTERS[letter - FEW..=letter - FEW],
        };
        let cost = [1, 1, 1, 1, 2, 3, 0, 11][self.below(8) as usize];
        let line = ChargeSpec::new(100 + limit, key, params).cost(cost);
        let line = match self.below(12) {
            0 | 1 => line.shadow(),
            2 => line.owing(self.below(12)),
            3 => line.shadow().owing(self.below(12)),
            _ => line,
        };
        match Penalty::try_new(2 + limit as u32 % 2, 700_000, 1_500, 4_000_000) {
            Ok(penalty) if limit.is_multiple_of(2) => line.penalty(penalty),
            _ => line,
        }
    }
}
