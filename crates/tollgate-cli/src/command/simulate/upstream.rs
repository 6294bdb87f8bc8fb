//! A model of an upstream: some workers, an unbounded queue, and random work.
#![expect(clippy::float_arithmetic, reason = "random times of a model, not a decision")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tollgate_policy::parse_duration_us;

/// The arguments of the upstream.
#[derive(clap::Args)]
pub(super) struct UpstreamArguments {
    /// Put an upstream with this many workers behind the limits, protected by `shed`
    ///
    /// Every admitted check becomes a call. Calls wait in an unbounded queue until a worker is
    /// free. The shedders of the policy see when calls end, and requests wait for a slot as at the
    /// gateway. The summary and the picture are then by class.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    workers: Option<u32>,

    /// The average time that a worker needs for a call
    #[arg(long, value_name = "DURATION", requires = "workers", default_value = "10ms", value_parser = duration)]
    work: u64,

    /// The distribution of times around that average
    #[arg(long, value_name = "KIND", requires = "workers", default_value = "exponential")]
    distribution: WorkDistribution,

    /// Stop all workers for a while at the end of each period: `50ms/1s`
    #[arg(long, value_name = "FOR/EVERY", requires = "workers", value_parser = pauses)]
    pauses: Option<Pauses>,
}

/// The distribution of the times of calls.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum WorkDistribution {
    /// Memoryless: many short calls, few long ones
    Exponential,
    /// Nine of ten calls take half of the average, one takes five and a half times as long
    Bimodal,
    /// Pareto with infinite variance, cut at three seconds
    HeavyTail,
}

/// Pauses of all workers, at the end of each period.
#[derive(Clone, Copy, Debug)]
struct Pauses {
    every_us: u64,
    pause_us: u64,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndedCall {
    pub(super) at_us: u64,
    pub(super) call: u64,
}

/// The workers and their queue, in virtual time. The same calls take the same time in each run.
#[derive(Debug)]
pub(super) struct UpstreamModel {
    workers: usize,
    mean_us: u64,
    distribution: WorkDistribution,
    pauses: Option<Pauses>,
    random: u64,
    queue: VecDeque<u64>,
    busy: BinaryHeap<Reverse<EndedCall>>,
}

impl UpstreamArguments {
    /// Creates the upstream, if `--workers` is given.
    pub(super) fn model(&self) -> Option<UpstreamModel> {
        let workers = self.workers? as usize;
        let (queue, busy) = (VecDeque::new(), BinaryHeap::new());
        let Self { work: mean_us, distribution, pauses, .. } = *self;
        Some(UpstreamModel { workers, mean_us, distribution, pauses, random: 1, queue, busy })
    }
}

fn duration(text: &str) -> Result<u64, String> {
    parse_duration_us(text).and_then(|us| match us {
        0 => Err("work must take some time, such as 10ms".into()),
        us => Ok(us),
    })
}

fn pauses(text: &str) -> Result<Pauses, String> {
    let (pause, every) = text.split_once('/').ok_or("write `FOR/EVERY`, such as `50ms/1s`")?;
    let (pause_us, every_us) = (parse_duration_us(pause)?, parse_duration_us(every)?);
    if pause_us >= every_us {
        return Err("a pause must be shorter than the time between two pauses".into());
    }
    Ok(Pauses { every_us, pause_us })
}

impl UpstreamModel {
    /// Adds a call to the queue.
    pub(super) fn begin(&mut self, now_us: u64, call: u64) {
        self.queue.push_back(call);
        self.work(now_us);
    }

    /// The time at which the next call ends.
    pub(super) fn next_end_us(&self) -> Option<u64> {
        self.busy.peek().map(|Reverse(ended)| ended.at_us)
    }

    /// Ends the next call; its worker starts another.
    pub(super) fn end_next(&mut self) -> Option<EndedCall> {
        let Reverse(ended) = self.busy.pop()?;
        self.work(ended.at_us);
        Some(ended)
    }

    fn work(&mut self, now_us: u64) {
        while self.busy.len() < self.workers
            && let Some(call) = self.queue.pop_front()
        {
            let took_us = self.took_us().max(1);
            self.busy.push(Reverse(EndedCall { at_us: self.after_pauses(now_us, took_us), call }));
        }
    }

    /// The time at which work that starts now ends.
    fn after_pauses(&self, mut now_us: u64, mut left_us: u64) -> u64 {
        let Some(Pauses { every_us, pause_us }) = self.pauses else { return now_us + left_us };
        loop {
            let works_us = (every_us - pause_us).saturating_sub(now_us % every_us);
            if left_us <= works_us {
                return now_us + left_us;
            }
            left_us -= works_us;
            now_us = (now_us / every_us + 1) * every_us;
        }
    }

    fn took_us(&mut self) -> u64 {
        let (mean_us, random) = (self.mean_us as f64, self.uniform());
        let took_us = match self.distribution {
            WorkDistribution::Exponential => -random.ln() * mean_us,
            WorkDistribution::Bimodal if random < 0.9 => mean_us / 2.0,
            WorkDistribution::Bimodal => mean_us * 5.5,
            WorkDistribution::HeavyTail => (mean_us * 0.8 / 1.8 / random.powf(1.0 / 1.8)).min(3e6),
        };
        took_us as u64
    }

    /// A random number above 0 and up to 1, by splitmix64.
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}
