//! Suggested numbers, and a reason for each.

use super::rates::{Distribution, HOUR, MINUTE, PeakRates, SECOND};
use super::survey::{ClientKey, EndpointUse};
use tollgate_picture::axis::format_grouped;

/// The numbers of keys from which the top thousandth and the top hundredth are significant.
const MANY_KEYS: usize = 1_000;
const SOME_KEYS: usize = 100;
/// The most endpoints with their own cost.
const COSTS_MAX: usize = 10;
/// The number of requests from which the mean of an endpoint is significant.
const TIMED_MIN: u64 = 20;

/// A suggested limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) algorithm: &'static str,
    /// The rate, in units per minute.
    pub(super) rate: u64,
    pub(super) burst: Option<u64>,
    /// The reasons for the number and the algorithm.
    pub(super) reasons: Vec<String>,
}

/// Returns the peak that the usual keys stay at or below, and the share of those keys in words.
fn usual(peaks: &Distribution) -> (u64, &'static str) {
    match peaks.len() {
        n if n >= MANY_KEYS => (peaks.at(999), "99.9 % of"),
        n if n >= SOME_KEYS => (peaks.at(990), "99 % of"),
        _ => (peaks.max(), "all"),
    }
}

/// Suggests the limit for all requests of a client. `units_max` is the cost of the most expensive
/// request. `has_hours` says whether the log is long enough to judge an hour.
pub(super) fn per_client(
    rates: &PeakRates,
    key: ClientKey,
    units_max: u64,
    has_hours: bool,
) -> Advice {
    let unit = if units_max > 1 { "units" } else { "requests" };
    let minutes = rates.distribution(MINUTE);
    let (base, part) = usual(&minutes);
    let is_alone = minutes.max() <= 3 * base;
    // Without outliers, the limit should affect no client; with outliers, it should affect only
    // them.
    let rate = round_up(if is_alone { minutes.max() * 3 / 2 } else { base * 6 / 5 }.max(5));
    let median = minutes.at(500).max(1);
    let touched = minutes.above(rate);
    let figure = format_grouped;
    let mut reason = format!("{part} {} stay under {} {unit}/min", key.plural(), figure(base + 1));
    match touched.first() {
        None => reason.push_str(&format!("; {}/min would have touched nobody", figure(rate))),
        Some(least) => reason.push_str(&format!(
            "; {}/min would have touched {} of {}, all above {}x the median of {}",
            figure(rate),
            figure(touched.len() as u64),
            figure(minutes.len() as u64),
            figure((least - 1) / median),
            figure(median),
        )),
    }
    let seconds = usual(&rates.distribution(SECOND)).0;
    let hourly = usual(&rates.distribution(HOUR)).0;
    // A few expensive requests are not a burst.
    let is_bursty =
        has_hours && seconds > 2 * units_max && 10 * seconds > rate && 3 * hourly < 60 * base;
    if is_bursty {
        let sustained = round_up((hourly * 6 / 5).div_ceil(60).max(5));
        let algorithm = if minutes.len() >= 100_000 { "gcra" } else { "token-bucket" };
        let why = format!(
            "{algorithm}: {} come in bursts of up to {} a second, then pause; {} an hour are {}/min",
            unit,
            figure(seconds),
            figure(hourly),
            figure(hourly.div_ceil(60)),
        );
        return Advice {
            algorithm,
            rate: sustained,
            burst: Some(rate),
            reasons: vec![reason, why],
        };
    }
    let why = "sliding-window: general purpose, no doubled rate where two windows meet".into();
    Advice { algorithm: "sliding-window", rate, burst: None, reasons: vec![reason, why] }
}

/// Suggests the limit by address of an endpoint where passwords are guessed.
pub(super) fn login(usage: &EndpointUse) -> Advice {
    let minutes = usage.rates.distribution(MINUTE);
    // Guessers are the outliers here, so the limit follows the middle of the distribution.
    let (base, part) = match minutes.len() {
        n if n >= SOME_KEYS => (minutes.at(900), "90 % of"),
        n if n >= 10 => (minutes.at(500), "half of the"),
        _ => (5, ""),
    };
    let rate = round_up((base * 3 / 2).clamp(5, 60));
    let mut reason = format!(
        "{} of {} requests were denied (401, 403)",
        format_grouped(usage.denied),
        format_grouped(usage.requests)
    );
    if !part.is_empty() {
        reason.push_str(&format!("; {part} addresses stay under {}/min", format_grouped(base + 1)));
    }
    Advice { algorithm: "sliding-window", rate, burst: None, reasons: vec![reason] }
}

/// Sets the cost of a request to each endpoint: how much longer its response takes than usual.
pub(super) fn unit_costs(usage: &mut [EndpointUse]) {
    let mut means: Vec<(u64, u64)> = usage
        .iter()
        .filter(|usage| usage.timed >= TIMED_MIN)
        .filter_map(|usage| Some((usage.mean_us()?, usage.requests)))
        .collect();
    means.sort_unstable();
    let half = means.iter().map(|(_, requests)| requests).sum::<u64>().div_ceil(2);
    let mut before = 0;
    let usual = means.iter().find(|(_, requests)| {
        before += requests;
        before >= half
    });
    let Some(usual_us) = usual.map(|(mean_us, _)| (*mean_us).max(1_000)) else { return };
    let mut slow: Vec<(u64, usize)> = Vec::new();
    for (place, usage) in usage.iter().enumerate().filter(|(_, usage)| usage.timed >= TIMED_MIN) {
        let ratio = usage.mean_us().unwrap_or(0) / usual_us;
        if ratio >= 5 {
            slow.push((usage.duration_us, place));
        }
    }
    slow.sort_unstable_by_key(|(duration_us, place)| (std::cmp::Reverse(*duration_us), *place));
    for (_, place) in slow.into_iter().take(COSTS_MAX) {
        let ratio = usage[place].mean_us().unwrap_or(0) / usual_us;
        usage[place].units = round_down(ratio).min(100);
    }
}

/// Leading digits of round numbers.
const ROUND: [u64; 9] = [10, 12, 15, 20, 25, 30, 40, 50, 80];

/// The smallest round number that is not smaller.
fn round_up(number: u64) -> u64 {
    if number <= 10 {
        return number;
    }
    let mut scale = 1;
    loop {
        for round in ROUND.into_iter().chain([100]) {
            if round * scale >= number {
                return round * scale;
            }
        }
        scale *= 10;
    }
}

/// The largest round number that is not larger.
fn round_down(number: u64) -> u64 {
    let mut best = number.min(10);
    for scale in [1, 10, 100, 1_000] {
        best = ROUND
            .into_iter()
            .map(|round| round * scale)
            .filter(|round| *round <= number)
            .fold(best, u64::max);
    }
    best
}

#[cfg(test)]
mod tests;
