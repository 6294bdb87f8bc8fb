//! Encodes params for the mirrors, and decodes values from them.

use crate::algorithm::{
    Bucket, CalendarWindow, Concurrency, DatedTat, FixedWindow, Gcra, LeakyBucket, SlidingLog,
    SlidingWindow, Tat, TokenBucket, calendar_window, fixed_window, sliding_window, token_bucket,
};
use crate::{Algorithm, CalendarUnit, LimitParams, LimitState, Rate, penalty};

/// The latest start of a calendar window.
const START_S_MAX: u64 = 1 << 34;

/// Encodes params as six integers. The first is the index of the algorithm in
/// [`MIRRORS`](super::MIRRORS), from one. Limit and window, limit and TTL, or interval and scale
/// follow, and for buckets the count, the capacity and the burst. A calendar window has its limit,
/// the start of the first of [three windows](LimitParams::resolve_calendar) in seconds, and their
/// lengths in seconds.
pub fn to_lua_params(params: &LimitParams) -> [u64; 6] {
    let capacity = params.capacity();
    let window = |index: u64| [index, capacity, params.period_us(), 0, 0, 0];
    let bucket = |index: u64, one: &Bucket| {
        [index, one.interval(), one.scale(), one.count().into(), capacity, one.burst()]
    };
    match params {
        LimitParams::FixedWindow(_) => window(1),
        LimitParams::SlidingWindow(_) => window(2),
        LimitParams::SlidingLog(_) => window(3),
        LimitParams::TokenBucket(one) => bucket(4, one.bucket()),
        LimitParams::LeakyBucket(one) => bucket(5, one.bucket()),
        LimitParams::Gcra(one) => bucket(6, one.bucket()),
        LimitParams::Concurrency(slots) => [7, capacity, slots.ttl_us(), 0, 0, 0],
        LimitParams::CalendarWindow(window) => {
            let [first_s, one_s, two_s, three_s] = window.resolved_windows();
            [8, capacity, first_s, one_s, two_s, three_s]
        }
    }
}

/// Encodes a charge of `cost` for the scripts that decide single charges; `None` if the algorithm
/// needs another script.
///
/// For limits whose state is one TAT: the longest backlog that admits `cost`, in whole microseconds
/// plus one (zero if `cost` never fits) and a fraction. Then the time that `cost` adds, whole and
/// fraction; the scale of fractions, and the count they belong to; the drain time of a full bucket,
/// and the period. For fixed and sliding windows: the largest use that admits `cost`, plus one
/// (zero if it never fits); the window; the cost; whether the previous window counts; and zeros,
/// since no scale is zero.
pub fn charge_kind(params: &LimitParams, cost: u64) -> Option<[u64; 8]> {
    let bucket = match params {
        LimitParams::Gcra(one) => one.bucket(),
        LimitParams::LeakyBucket(one) => one.bucket(),
        LimitParams::FixedWindow(_) | LimitParams::SlidingWindow(_) => {
            let room = params.capacity().checked_sub(cost).map_or(0, |rest| rest + 1);
            let slides = matches!(params, LimitParams::SlidingWindow(_)).into();
            return Some([room, params.period_us(), cost, slides, 0, 0, 0, 0]);
        }
        _ => return None,
    };
    let (interval, scale, count) = (bucket.interval(), bucket.scale(), bucket.count());
    let (window_us, period_us) = (bucket.window_us(), bucket.period_us());
    // The capacity drains in at most 100 years, so both values fit.
    let span = |units: u64| {
        let span = u128::from(units) * u128::from(interval);
        let (whole, part) = (span / u128::from(scale), span % u128::from(scale));
        [whole as u64, part as u64]
    };
    let Some(rest) = params.capacity().checked_sub(cost) else {
        return Some([0, 0, 0, 0, scale, count.into(), window_us, period_us]);
    };
    let ([room, room_part], [span, span_part]) = (span(rest), span(cost));
    Some([room + 1, room_part, span, span_part, scale, count.into(), window_us, period_us])
}

/// Encodes params as seven integers, for [`decode_params`]: those of [`to_lua_params`], and the
/// period.
pub fn encode_params(params: &LimitParams) -> [u64; 7] {
    let [index, a, b, count, capacity, burst] = to_lua_params(params);
    [index, a, b, count, capacity, burst, params.period_us()]
}

/// Decodes params of [`encode_params`]; `None` if out of range.
pub fn decode_params(written: [u64; 7]) -> Option<LimitParams> {
    let [index, a, b, count, capacity, burst, period_us] = written;
    let rate = |count| Rate::try_new(count, period_us).ok();
    Some(match index {
        1 => LimitParams::FixedWindow(FixedWindow::new(rate(a)?)),
        2 => LimitParams::SlidingWindow(SlidingWindow::new(rate(a)?)),
        3 => LimitParams::SlidingLog(SlidingLog::new(rate(a)?)),
        4 => LimitParams::TokenBucket(TokenBucket::try_new(rate(count)?, Some(capacity)).ok()?),
        5 => {
            let queue = capacity.checked_sub(burst)?;
            LimitParams::LeakyBucket(
                LeakyBucket::try_new(rate(count)?, Some(burst), Some(queue)).ok()?,
            )
        }
        6 => LimitParams::Gcra(Gcra::try_new(rate(count)?, Some(capacity)).ok()?),
        7 => LimitParams::Concurrency(Concurrency::try_new(a, b).ok()?),
        8 => {
            let unit = CalendarUnit::of_nominal_us(period_us)?;
            let known = [b, count, capacity, burst];
            LimitParams::CalendarWindow(CalendarWindow::from_resolved(a, unit, known)?)
        }
        _ => return None,
    })
}

/// Decodes the state that a mirror's `encode` wrote, for the algorithm of `params`. Returns `None`
/// if it is malformed, and for expiry logs, which never leave Redis.
pub fn decode_state(params: &LimitParams, value: &[u8]) -> Option<LimitState> {
    match params {
        LimitParams::FixedWindow(_) => {
            let [index, _, count] = window_counts(value)?;
            Some(LimitState::FixedWindow(fixed_window::State { index, count }))
        }
        LimitParams::SlidingWindow(_) => {
            let [index, previous, current] = window_counts(value)?;
            Some(LimitState::SlidingWindow(sliding_window::State { index, previous, current }))
        }
        LimitParams::TokenBucket(_) => {
            let (latest, full) = value.split_first_chunk::<7>()?;
            let state = token_bucket::State { full: packed(full)?, latest_us: integer(latest) };
            Some(LimitState::TokenBucket(state))
        }
        LimitParams::LeakyBucket(_) | LimitParams::Gcra(_) => match value.first() {
            Some(..32) => packed_dated(value).map(LimitState::Tat),
            _ => {
                let [us] = decimals(value)?;
                let tat = Tat { us, ..Tat::default() };
                Some(LimitState::Tat(DatedTat { tat, ahead_us: 0 }))
            }
        },
        LimitParams::CalendarWindow(_) => {
            let [start_s, count] = decimals(value)?;
            let start_s = (start_s <= START_S_MAX).then_some(start_s)?;
            Some(LimitState::CalendarWindow(calendar_window::State { start_s, count }))
        }
        LimitParams::SlidingLog(_) | LimitParams::Concurrency(_) => None,
    }
}

/// Decodes the state that the penalty's mirror wrote; `None` if malformed.
pub fn decode_penalty(value: &[u8]) -> Option<penalty::PenaltyState> {
    let (blocked, value) = match value.strip_prefix(b"!") {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let [violations, blocks, mark_us] = decimals(value)?;
    let narrow = |count: u64| u32::try_from(count).ok();
    let (violations, blocks) = (narrow(violations)?, narrow(blocks)?);
    Some(penalty::PenaltyState { violations, blocks, mark_us, blocked })
}

/// Parses decimal numbers separated by colons.
fn decimals<const N: usize>(value: &[u8]) -> Option<[u64; N]> {
    let mut parts = core::str::from_utf8(value).ok()?.split(':');
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Decodes index, previous and current count, as `window.lua` writes them. The window between them
/// only determines the expiry of the key.
fn window_counts(value: &[u8]) -> Option<[u64; 3]> {
    let (index, counts) = value.split_first_chunk::<6>()?;
    let counts = counts.get(6..).filter(|counts| matches!(counts.len(), 8 | 14))?;
    let (previous, current) = counts.split_at(counts.len() / 2);
    Some([integer(index), integer(previous), integer(current)])
}

/// Decodes a TAT as [`packed`] does, from an odd number of bytes. An even number starts with seven
/// bytes of `ahead_us`.
fn packed_dated(value: &[u8]) -> Option<DatedTat> {
    let (ahead, tat) = value.split_at_checked(if value.len().is_multiple_of(2) { 7 } else { 0 })?;
    Some(DatedTat { tat: packed(tat)?, ahead_us: integer(ahead) })
}

/// Decodes seven bytes of whole microseconds. Unless it is zero, the fraction follows, and the
/// count in as many bytes.
fn packed(value: &[u8]) -> Option<Tat> {
    let (us, rest) = value.split_first_chunk::<7>()?;
    let narrow = |bytes: &[u8]| u32::try_from(integer(bytes)).ok();
    match rest.len() {
        0 => Some(Tat { us: integer(us), ..Tat::default() }),
        2 | 4 | 6 | 8 => {
            let (fraction, count) = rest.split_at(rest.len() / 2);
            Some(Tat { us: integer(us), fraction: narrow(fraction)?, count: narrow(count)? })
        }
        _ => None,
    }
}

/// Decodes at most eight bytes, big-endian.
fn integer(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
