//! Measures `consistency: leased`: hot keys beside memory, and many mostly cold keys beside exact
//! limits.

use super::{IN_FLIGHT, MEMORY, Turn, column, runner_of, turn};
use crate::contender::{Programs, Wants};
use crate::load::Load;
use crate::redis::Redis;
use crate::table::{Rounds, median, quantile, ratio, spread, verdict};
use crate::turns::{Runner, interleave};
use crate::{Effort, LOAD_CORE};
use std::error::Error;
use std::time::Duration;

const LEASED: &str = "leased, on Redis";
const EXACT: &str = "exact, on Redis";
/// The number of users in the hot rows.
const HOT_USERS: usize = 10;
const COLD_USERS: usize = 1_000_000;
const QUIET: Duration = Duration::from_secs(3);
/// The number of prepared requests, so that the load computes nothing while it measures.
const DRAWS: usize = 400_000;

/// Prints both tables.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    let redis = Redis::start(LOAD_CORE, &[])?;
    let store = format!("url: 'redis://127.0.0.1:{}/0'", redis.port);
    hot(programs, &store, &redis, effort)?;
    cold(programs, &store, &redis, effort)
}

fn hot(
    programs: &Programs,
    store: &str,
    redis: &Redis,
    effort: Effort,
) -> Result<(), Box<dyn Error>> {
    let limit = |leased| limit(50_000_000, leased);
    let requests: Vec<_> = (0..HOT_USERS).map(|user| Wants::Check.request(user)).collect();
    let mut runners = [
        runner_of(programs, MEMORY, "", &limit(false))?,
        runner_of(programs, LEASED, store, &limit(true))?,
    ];
    runners.iter_mut().for_each(|runner| runner.requests.clone_from(&requests));
    let figures = turns(&runners, redis, effort)?;
    let pace = median(&column(&figures[0], |turn| turn.node_us));
    let rate = (0.5e6 / pace / 1e3).round().max(1.0) * 1e3;
    let delays = interleave(&runners, effort.rounds, |runner| {
        let mut load = Load::open(runner.server.address, &runner.requests, IN_FLIGHT)?;
        let delays = load.open_loop((rate * effort.schedule_seconds) as usize, rate)?;
        Ok(delays.answered_ns.into_iter().map(|ns| ns as f64 / 1e3).collect::<Rounds>())
    })?;
    let at = |runner: usize, share| -> Rounds {
        delays[runner].iter().map(|delays| quantile(delays, share)).collect()
    };
    println!("\n### Leased: {HOT_USERS} hot keys, {IN_FLIGHT} in flight over HTTP\n");
    println!(
        "| | node, us a request | spread | of memory | target | | k/s | store calls a decision | p50, us at {:.0} k/s | p99 | of memory |",
        rate / 1e3
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let base = column(&figures[0], |turn| turn.node_us);
    for (place, (runner, turns)) in runners.iter().zip(&figures).enumerate() {
        let own = column(turns, |turn| turn.node_us);
        let (p50, p99) = (at(place, 0.5), at(place, 0.99));
        let target = match place {
            0 => " | ".into(),
            _ => verdict(ratio(&own, &base), 1.15, " x"),
        };
        println!(
            "| {} | {:.1} | {} | {:.2} | {target} | {:.1} | {:.5} | {:.0} | {:.0} | {:.2} |",
            runner.contender.name,
            median(&own),
            spread(&own, 1),
            ratio(&own, &base),
            median(&column(turns, |turn| turn.k_per_s)),
            median(&column(turns, |turn| 1.0 / turn.batch)),
            median(&p50),
            median(&p99),
            ratio(&p99, &at(0, 0.99)),
        );
    }
    Ok(())
}

fn cold(
    programs: &Programs,
    store: &str,
    redis: &Redis,
    effort: Effort,
) -> Result<(), Box<dyn Error>> {
    let limit = |leased| limit(10_000_000, leased);
    let requests = zipf();
    let mut runners = [
        runner_of(programs, EXACT, store, &limit(false))?,
        runner_of(programs, LEASED, store, &limit(true))?,
    ];
    runners.iter_mut().for_each(|runner| runner.requests.clone_from(&requests));
    let figures = turns(&runners, redis, effort)?;
    println!("\n### Leased: {COLD_USERS} keys, zipf 0.99, {IN_FLIGHT} in flight over HTTP\n");
    println!(
        "| | node, us a request | of exact | store, us a decision | store calls a decision | k/s | of exact |"
    );
    println!("|---|---|---|---|---|---|---|");
    let of = |place: usize, figure: fn(&Turn) -> f64| column(&figures[place], figure);
    for (place, runner) in runners.iter().enumerate() {
        let (node, k) = (of(place, |turn| turn.node_us), of(place, |turn| turn.k_per_s));
        println!(
            "| {} | {:.1} | {:.2} | {:.2} | {:.3} | {:.1} | {:.2} |",
            runner.contender.name,
            median(&node),
            ratio(&node, &of(0, |turn| turn.node_us)),
            median(&of(place, |turn| turn.store_us)),
            median(&of(place, |turn| 1.0 / turn.batch)),
            median(&k),
            ratio(&k, &of(0, |turn| turn.k_per_s)),
        );
    }
    Ok(())
}

/// A window limit that no user reaches, because a refusal would be cheaper. The stores here have a
/// deadline of a second, for which the usual grace period is too short.
fn limit(a_minute: u64, leased: bool) -> String {
    let consistency = if leased { ", consistency: {leased: {quiet: 2250ms}}" } else { "" };
    format!(
        "  - {{name: per-user, key: [user], algorithm: fixed-window, rate: {a_minute}/min{consistency}}}\n"
    )
}

fn turns(
    runners: &[Runner],
    redis: &Redis,
    effort: Effort,
) -> Result<Vec<Vec<Turn>>, Box<dyn Error>> {
    // A node takes no units from a store that it does not know yet.
    std::thread::sleep(QUIET);
    let turn = |runner: &Runner| {
        let stores = std::slice::from_ref(redis);
        let stores = if runner.contender.name == MEMORY { &[] } else { stores };
        turn(&[&runner.server], stores, &runner.requests, IN_FLIGHT, effort.requests / 3)
    };
    interleave(runners, 1, turn)?;
    interleave(runners, effort.rounds, turn)
}

/// Requests for users drawn by rank, most frequent first, with a generator of our own: equal in
/// every run.
fn zipf() -> Vec<Vec<u8>> {
    let mut sums = Vec::with_capacity(COLD_USERS);
    let mut sum = 0.0;
    for rank in 1..=COLD_USERS {
        sum += 1.0 / (rank as f64).powf(0.99);
        sums.push(sum);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 * sum
    };
    let user = |at: f64| sums.partition_point(|sum| *sum < at);
    (0..DRAWS).map(|_| Wants::Check.request(user(draw()))).collect()
}
