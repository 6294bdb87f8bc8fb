//! Runs rounds with a turn of every contender, so that disturbances of the machine affect all of
//! them.

use contenders::{Arrivals, Contender};
use std::fs;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// The effort of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Turns of each contender; with an odd number the median is a measured value.
    pub(crate) rounds: usize,
    /// The duration of one turn.
    pub(crate) millis: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 9, millis: 300 }
    }
}

/// Decides once for every key, so that none is new when measured.
pub(crate) fn fill(contender: &dyn Contender, keys: &[String]) {
    contender.run(Arrivals { keys, from: 0, count: keys.len(), shared: false });
}

/// Nanoseconds per decision: for each contender, for each round.
pub(crate) fn interleave(
    contenders: &[Box<dyn Contender>],
    keys: &[String],
    threads: usize,
    effort: Effort,
) -> Vec<Vec<f64>> {
    let wanted_ns = effort.millis as f64 * 1e6;
    let counts: Vec<usize> = contenders
        .iter()
        .map(|contender| {
            // The first turn is an estimate and a warm-up; the second is long enough to be
            // reliable.
            let guess = (0..2).fold(20_000, |count, _| {
                let start = Instant::now();
                turn(&**contender, keys, 0, count, threads);
                let ns = start.elapsed().as_nanos() as f64 / count as f64;
                ((wanted_ns / 4.0 / ns) as usize).max(1_000)
            });
            guess * 4
        })
        .collect();
    let mut rounds = vec![Vec::with_capacity(effort.rounds); contenders.len()];
    for round in 0..effort.rounds {
        for place in 0..contenders.len() {
            // Each round starts with another contender, so that none always follows the same one.
            let n = (round + place) % contenders.len();
            rounds[n].push(turn(&*contenders[n], keys, round, counts[n], threads));
        }
    }
    rounds
}

/// Nanoseconds per decision when `threads` pinned threads share `count` decisions.
fn turn(
    contender: &dyn Contender,
    keys: &[String],
    round: usize,
    count: usize,
    threads: usize,
) -> f64 {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let barrier = Barrier::new(threads);
    let each = count / threads;
    let slowest = thread::scope(|scope| {
        let turns: Vec<_> = (0..threads)
            .map(|n| {
                let core = cores.get(n).copied().filter(|_| threads <= cores.len());
                let barrier = &barrier;
                scope.spawn(move || {
                    core.map(core_affinity::set_for_current);
                    let from = (round * 7_919 + n * keys.len() / threads) % keys.len();
                    let arrivals = Arrivals { keys, from, count: each, shared: threads > 1 };
                    barrier.wait();
                    let (start, waited) = (Instant::now(), waited());
                    black_box(contender.run(arrivals));
                    let elapsed = start.elapsed();
                    // Threads beyond the number of cores wait for each other, and that time counts.
                    match core {
                        Some(_) => elapsed.saturating_sub(self::waited().saturating_sub(waited)),
                        None => elapsed,
                    }
                })
            })
            .collect();
        turns.into_iter().filter_map(|turn| turn.join().ok()).max().unwrap_or_default()
    });
    slowest.as_nanos() as f64 / (each * threads) as f64
}

/// The time for which this thread was runnable while the processor ran something else. It is not
/// counted.
fn waited() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited_ns = text.split(' ').nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0);
    Duration::from_nanos(waited_ns)
}
