//! Measures how Tollgate follows changes: an overload that ends, workers that leave, and calls that
//! become slower.

use super::clients::{self, Call, Fate};
use super::guards::{self, Guard};
use super::{CAPACITY, Upstream, control};
use crate::contender::Programs;
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

/// The time at which an overload ends, or the upstream changes.
const CHANGE_S: u64 = 10;
const SECONDS: u64 = 20;
const SAMPLE: Duration = Duration::from_millis(250);

pub(super) fn report(
    programs: &Programs,
    upstream: &Upstream,
    work: &str,
) -> Result<(), Box<dyn Error>> {
    println!("\nTollgate, {work} work, from three times the capacity:\n");
    let calls = run(programs, upstream, None)?.0;
    let end_us = CHANGE_S * 1_000_000;
    let refused = calls.iter().filter(|call| call.due_us >= end_us && !is_served(call));
    let last_us = refused.map(|call| call.due_us - end_us).max().unwrap_or(0);
    println!("* back to half the capacity: the last refusal comes {last_us} us after the end;");
    for (what, change) in [("four workers leave", "10000/4"), ("calls take 20 ms", "20000/8")] {
        let (calls, limits) = run(programs, upstream, Some(change))?;
        let by_second = (CHANGE_S..SECONDS).map(|second| {
            let is_in = |call: &&Call| call.due_us / 1_000_000 == second && is_served(call);
            calls.iter().filter(is_in).count()
        });
        let by_second: Vec<String> = by_second.map(|count| count.to_string()).collect();
        let limits: Vec<String> =
            limits.iter().step_by(4).map(|(s, limit)| format!("{limit} at {s:.0} s")).collect();
        println!(
            "* {what} at {CHANGE_S} s: served of 400 a second in each second after: {}; limit {}.",
            by_second.join(", "),
            limits.join(", ")
        );
    }
    Ok(())
}

fn is_served(call: &Call) -> bool {
    matches!(call.fate, Fate::Served(_))
}

/// Runs three times the capacity; then the upstream changes, or the load drops to half of the
/// capacity.
fn run(
    programs: &Programs,
    upstream: &Upstream,
    change: Option<&str>,
) -> Result<(Vec<Call>, Vec<(f64, u64)>), Box<dyn Error>> {
    upstream.reset()?;
    let guard = Guard::start(programs, guards::OURS, upstream.0.address)?;
    let pace = match change {
        Some(_) => vec![(0, 3.0 * CAPACITY)],
        None => vec![(0, 3.0 * CAPACITY), (CHANGE_S, CAPACITY / 2.0)],
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut limits, mut is_changed) = (Vec::new(), false);
            while start.elapsed() < Duration::from_secs(SECONDS) {
                if start.elapsed() >= Duration::from_secs(CHANGE_S) && !is_changed {
                    is_changed = true;
                    // If this fails, the figures show no change.
                    change.map(|change| control(upstream.0.address, change).ok());
                }
                limits.extend(guard.limit().map(|limit| (start.elapsed().as_secs_f64(), limit)));
                thread::sleep(SAMPLE);
            }
            limits
        });
        let calls = clients::run(guard.address, &pace, SECONDS, 7)?;
        let limits = watcher.join().map_err(|_| "the limit cannot be read")?;
        Ok((calls, limits))
    })
}
