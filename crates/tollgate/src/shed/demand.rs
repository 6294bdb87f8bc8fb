//! Demand: how much more is asked for than the upstream completes, over the last second.

/// The length of a tick.
pub(super) const TICK_US: u64 = 50_000;
/// Ticks of the window.
const TICKS: usize = 20;
/// Overload begins when the excess is more than this share of what was completed, in percent.
const BEGIN_PERCENT: u64 = 25;
/// Overload ends when the excess is less than this.
const END_PERCENT: u64 = 12;

/// Counts of one tick.
#[derive(Debug, Clone, Copy, Default)]
struct Tick {
    ended: u32,
    completed: u32,
    shed: u32,
    /// Requests that waited when the tick began.
    waiting: u32,
}

/// Counts over the last second, and what they say.
#[derive(Debug)]
pub(super) struct Demand {
    tick: Tick,
    /// Counts of earlier ticks. The one at `current` is in `tick`.
    ticks: [Tick; TICKS],
    current: usize,
    tick_end_us: u64,
    /// Calls that ended in earlier ticks, whether the upstream did its work or not.
    ended: u64,
    completed: u64,
    shed: u64,
    /// Ticks since the start, to know a rate before the window is full.
    elapsed: u64,
    /// Requests offered until this tick, by class.
    offered: Vec<u64>,
    /// Requests offered per tick, by class, smoothed, times 256.
    offered_mean: Vec<u64>,
    /// Requests in the last second that exceed the upstream's completed calls.
    excess: u64,
    is_overloaded: bool,
}

impl Demand {
    pub(super) fn new(classes: u8) -> Self {
        let classes = usize::from(classes);
        Self {
            tick: Tick::default(),
            ticks: [Tick::default(); TICKS],
            current: 0,
            tick_end_us: 0,
            ended: 0,
            completed: 0,
            shed: 0,
            elapsed: 0,
            offered: vec![0; classes],
            offered_mean: vec![0; classes],
            excess: 0,
            is_overloaded: false,
        }
    }

    pub(super) fn set_classes(&mut self, classes: u8) {
        self.offered.resize(classes.into(), 0);
        self.offered_mean.resize(classes.into(), 0);
    }

    #[inline]
    pub(super) fn is_tick_over(&self, now_us: u64) -> bool {
        now_us >= self.tick_end_us
    }

    /// Begins the next tick. `offered` counts the requests offered so far, by class.
    pub(super) fn tick(
        &mut self,
        now_us: u64,
        waiting: usize,
        offered: impl Iterator<Item = u64> + Clone,
    ) {
        let late = now_us.saturating_sub(self.tick_end_us) / TICK_US;
        // After a pause without requests, the whole window is empty.
        let ticks = if self.tick_end_us == 0 { 1 } else { (late + 1).min(TICKS as u64 + 1) };
        for _ in 0..ticks {
            let means = self.offered_mean.iter_mut().zip(&mut self.offered);
            for ((mean, before), offered) in means.zip(offered.clone()) {
                let now = (offered - std::mem::replace(before, offered)) << 8;
                *mean = *mean - *mean / 4 + now / 4;
            }
            let ended = std::mem::take(&mut self.tick);
            self.ended += u64::from(ended.ended);
            self.completed += u64::from(ended.completed);
            self.shed += u64::from(ended.shed);
            self.ticks[self.current] = ended;
            self.current = (self.current + 1) % TICKS;
            let gone = std::mem::take(&mut self.ticks[self.current]);
            self.ended -= u64::from(gone.ended);
            self.completed -= u64::from(gone.completed);
            self.shed -= u64::from(gone.shed);
            self.tick.waiting = waiting as u32;
        }
        self.elapsed = (self.elapsed + ticks).min(TICKS as u64);
        self.tick_end_us = match self.tick_end_us {
            0 => now_us + TICK_US,
            end => end + (late + 1) * TICK_US,
        };
        self.judge(waiting);
    }

    /// Leaves out a time in which this node stood still.
    pub(super) fn skip(&mut self, us: u64) {
        self.tick_end_us += us;
    }

    #[inline]
    pub(super) fn ended(&mut self, is_completed: bool) {
        self.tick.ended += 1;
        self.tick.completed += u32::from(is_completed);
    }

    /// Counts a shed request.
    pub(super) fn shed(&mut self) {
        self.tick.shed += 1;
    }

    /// Calls of the last second that ended.
    fn all_ended(&self) -> u64 {
        self.ended + u64::from(self.tick.ended)
    }

    fn all_completed(&self) -> u64 {
        self.completed + u64::from(self.tick.completed)
    }

    /// Decides whether demand exceeds what the upstream completes.
    ///
    /// A queue that grows and shrinks at a load of one is chance. So the excess of a second must be
    /// three standard deviations, and a share of what was completed.
    pub(super) fn judge(&mut self, waiting: usize) {
        let before = u64::from(self.ticks[(self.current + 1) % TICKS].waiting);
        let (shed, completed) = (self.shed + u64::from(self.tick.shed), self.all_completed());
        let excess = (waiting as u64 + shed).saturating_sub(before);
        self.excess = excess;
        let percent = if self.is_overloaded { END_PERCENT } else { BEGIN_PERCENT };
        let chance = match self.is_overloaded {
            true => 0,
            false => 3 * (2 * completed + excess).isqrt(),
        };
        self.is_overloaded = excess > chance.max(completed * percent / 100);
    }

    pub(super) fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// `us`, times what was completed, divided by what was in excess.
    pub(super) fn per_excess(&self, us: u64) -> u64 {
        us.saturating_mul(self.all_completed()) / self.excess.max(1)
    }

    /// Whether so much is in excess that probing costs nobody an admission.
    pub(super) fn is_heavy(&self) -> bool {
        self.is_overloaded && self.excess * 100 > self.all_completed() * BEGIN_PERCENT
    }

    /// Mean time between the ends of two calls.
    pub(super) fn gap_us(&self) -> u64 {
        (self.elapsed.max(1) * TICK_US / self.all_ended().max(1)).clamp(1, 1_000_000)
    }

    /// The time that the upstream needs for this many calls, with a reserve.
    pub(super) fn drains_us(&self, calls: u32) -> u64 {
        match self.all_ended() {
            0 => u64::MAX,
            _ => u64::from(calls) * self.gap_us() * 5 / 4,
        }
    }

    /// Completed calls in a tick, times 256.
    pub(super) fn completed_mean(&self) -> u64 {
        (self.all_completed() << 8) / self.elapsed.max(1)
    }

    /// Requests offered per tick, by class, times 256.
    pub(super) fn offered_mean(&self) -> &[u64] {
        &self.offered_mean
    }
}
