//! Converts the state of a limit to three numbers, and back (I7).

use super::BookSummary;
use tollgate_core::algorithm::{Tat, fixed_window, sliding_window, token_bucket};
use tollgate_core::{Algorithm, LimitParams, LimitState};

/// The state in a summary: the window and its counts, or the TAT, rounded up.
pub(super) fn figures(params: &LimitParams, state: &LimitState) -> [u64; 3] {
    match state {
        LimitState::FixedWindow(state) => [state.index, state.count, 0],
        LimitState::SlidingWindow(state) => [state.index, state.previous, state.current],
        state => [params.idle_at_us(state), 0, 0],
    }
}

/// Raises the state at `now_us` to a summary, or replaces it. Counts of a future window count in
/// the current one: another primary's clock was ahead.
///
/// Returns whether the state lacked units. The summary has credited `uncredited` returns that the
/// store will credit again. If a window has less than the summary after that, it lacks charges too.
pub(super) fn restore(
    params: &LimitParams,
    state: &mut LimitState,
    now_us: u64,
    summary: &BookSummary,
    (replaces, uncredited): (bool, u64),
) -> bool {
    let (before, theirs) = (state.clone(), &summary.state);
    let merge = |own: u64, other: u64| if replaces { other } else { own.max(other) };
    let lacks = |own: u64, other: u64| !replaces && other > own.saturating_sub(uncredited);
    let index = now_us / params.period_us();
    match params {
        LimitParams::FixedWindow(_) => {
            let own = match &before {
                LimitState::FixedWindow(own) if own.index == index => own.count,
                _ => 0,
            };
            let other = if theirs[0] >= index { theirs[1] } else { 0 };
            let count = merge(own, other);
            *state = LimitState::FixedWindow(fixed_window::State { index, count });
            count != own || lacks(own, other)
        }
        LimitParams::SlidingWindow(_) => {
            let counts_in = |at: u64, previous: u64, current: u64| match index.checked_sub(at) {
                None | Some(0) => (previous, current),
                Some(1) => (current, 0),
                Some(_) => (0, 0),
            };
            let own = match &before {
                LimitState::SlidingWindow(own) => counts_in(own.index, own.previous, own.current),
                _ => (0, 0),
            };
            let other = counts_in(theirs[0], theirs[1], theirs[2]);
            let (previous, current) = (merge(own.0, other.0), merge(own.1, other.1));
            *state = LimitState::SlidingWindow(sliding_window::State { index, previous, current });
            (previous, current) != own || lacks(own.0 + own.1, other.0 + other.1)
        }
        params => {
            if !replaces && params.idle_at_us(&before) >= theirs[0] {
                return false;
            }
            let full = Tat { us: theirs[0], fraction: 0, count: 0 };
            *state = match params.bucket() {
                Some(bucket) if !matches!(params, LimitParams::TokenBucket(_)) => {
                    LimitState::Tat(bucket.dated(full, now_us))
                }
                _ => LimitState::TokenBucket(token_bucket::State { latest_us: 0, full }),
            };
            true
        }
    }
}
