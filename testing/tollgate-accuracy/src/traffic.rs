//! Generated traffic: the instants of each source's requests, from the seed alone, without floats.

use crate::contestant::Limit;

/// A whole minute, so that windows of seconds, minutes and hours begin here.
pub(crate) const START_US: u64 = 1_700_002_800_000_000;
/// The number of attackers among a thousand sources.
pub(crate) const ATTACKERS_PER_MILLE: u64 = 10;
/// The number of bursty sources among a thousand.
pub(crate) const BURSTY_PER_MILLE: u64 = 200;
/// The most requests in a burst; the least are ten.
pub(crate) const BURST_MAX: u64 = 200;
/// The mean gap inside a burst.
pub(crate) const BURST_GAP_US: u64 = 20_000;
/// The duration of the traffic, in windows.
pub(crate) const WINDOWS: u64 = 60;
/// One, as a fixed-point number.
const ONE: u64 = 1 << 32;

/// The parameters of generated traffic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) seed: u64,
    pub(crate) sources: u64,
    /// The approximate number of requests over all sources.
    pub(crate) requests: u64,
    pub(crate) limit: Limit,
}

impl Default for Traffic {
    /// The numbers of sources and requests in Cloudflare's report.
    fn default() -> Self {
        let limit = Limit { count: 100, window_us: 60_000_000 };
        Self { seed: 1, sources: 270_000, requests: 400_000_000, limit }
    }
}

/// The behaviour of a source.
enum Habit {
    /// Independent requests at a mean rate.
    Steady { gap_us: u64 },
    /// Bursts, with pauses that keep the mean rate.
    Bursty { gap_us: u64, left: u64, pause_us: u64 },
    /// An attack on window boundaries: the limit at the end of one window, and again at the start
    /// of the next. Then ten times the rate of the limit until that window ends, and a window
    /// without requests.
    Attacker { step: u64 },
}

impl Traffic {
    pub(crate) fn end_us(&self) -> u64 {
        START_US + WINDOWS * self.limit.window_us
    }

    /// The instants of a source's requests. Sources are ranked by Zipf's law with exponent 1: the
    /// source of rank r sends 1/r of the requests of the first.
    pub(crate) fn times(&self, source: u64) -> impl Iterator<Item = u64> {
        let mut random = Random(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (source << 20));
        random.next();
        let kind = random.next() % 1_000;
        let gap_us = self.gap_us(source + 1);
        let habit = match kind {
            kind if kind < ATTACKERS_PER_MILLE => Habit::Attacker { step: 0 },
            kind if kind < ATTACKERS_PER_MILLE + BURSTY_PER_MILLE => {
                Habit::Bursty { gap_us, left: 0, pause_us: 0 }
            }
            _ => Habit::Steady { gap_us },
        };
        // Other sources start at a random time within a window.
        let first_us = match habit {
            Habit::Attacker { .. } => START_US,
            _ => START_US + random.scaled(gap_us.min(self.limit.window_us)),
        };
        let mut source = Source { limit: self.limit, random, habit, now_us: first_us };
        let end_us = self.end_us();
        std::iter::from_fn(move || Some(source.next_us()).filter(|us| *us < end_us))
    }

    /// The mean gap between two requests of the source with this rank.
    fn gap_us(&self, rank: u64) -> u64 {
        let span_us = u128::from(WINDOWS * self.limit.window_us);
        let harmonic = u128::from(harmonic(self.sources));
        let requests = u128::from(self.requests.max(1)) << 32;
        (span_us * u128::from(rank) * harmonic / requests).clamp(1, span_us) as u64
    }
}

/// The sum of 1/r for ranks up to `n`, as a fixed-point number.
fn harmonic(n: u64) -> u64 {
    (1..=n.min(64)).map(|rank| ONE / rank).sum::<u64>()
        + (6..40).filter_map(|bit| block(1 << bit, n)).sum::<u64>()
}

/// The sum of 1/r for ranks above `from` and up to twice `from`, approximated in 64 steps.
fn block(from: u64, n: u64) -> Option<u64> {
    let to = n.min(2 * from);
    let width = from / 64;
    let steps = (0..64).map(|step| from + step * width).filter(|low| *low < to);
    let sums = steps.map(|low| {
        let high = to.min(low + width);
        // 1/r is nearly linear within a step, so its middle represents all of it.
        2 * ONE / (low + high + 1) * (high - low)
    });
    (n > from).then(|| sums.sum())
}

struct Source {
    limit: Limit,
    random: Random,
    habit: Habit,
    now_us: u64,
}

impl Source {
    /// The instant of the next request.
    fn next_us(&mut self) -> u64 {
        let Self { limit, random, habit, now_us } = self;
        match habit {
            Habit::Steady { gap_us } => *now_us += random.exponential(*gap_us),
            Habit::Bursty { gap_us, left: 0, pause_us } => {
                let size = 10 + random.next() % (BURST_MAX - 9);
                *now_us += random.exponential(*pause_us);
                *pause_us = size * gap_us.saturating_sub(BURST_GAP_US);
                *habit = Habit::Bursty { gap_us: *gap_us, left: size - 1, pause_us: *pause_us };
            }
            Habit::Bursty { gap_us, left, .. } => {
                *left -= 1;
                *now_us += random.exponential(BURST_GAP_US.min(*gap_us));
            }
            Habit::Attacker { step } => {
                *now_us = attack_us(*limit, *step);
                *step += 1;
            }
        }
        *now_us
    }
}

/// The instants of an attacker's requests, without end.
pub(crate) fn attack_times(limit: Limit) -> impl Iterator<Item = u64> {
    (0..).map(move |step| attack_us(limit, step))
}

/// The instant of an attacker's request. An attack takes three windows.
fn attack_us(Limit { count, window_us }: Limit, step: u64) -> u64 {
    let per_attack = 12 * count;
    let attack_us = START_US + 3 * window_us * (step / per_attack);
    let step = step % per_attack;
    let second_us = window_us / 60;
    // The boundary between the first and the second window.
    let boundary_us = attack_us + window_us;
    match step {
        before if before < count => boundary_us - second_us + before * second_us / count,
        after if after < 2 * count => boundary_us + (after - count) * second_us / count,
        late => {
            boundary_us + second_us + (late - 2 * count) * (window_us - second_us) / (10 * count)
        }
    }
}

/// The random generator SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform random number below `bound`.
    fn scaled(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// An exponentially distributed number with this mean, by von Neumann's method. It is exact,
    /// and the same on every machine.
    fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0;
        loop {
            let first = self.next() >> 32;
            let (mut last, mut is_odd) = (first, true);
            loop {
                let next = self.next() >> 32;
                if next >= last {
                    break;
                }
                (last, is_odd) = (next, !is_odd);
            }
            if is_odd {
                return ((u128::from(mean) * u128::from(whole * ONE + first)) >> 32) as u64;
            }
            whole += 1;
        }
    }
}
