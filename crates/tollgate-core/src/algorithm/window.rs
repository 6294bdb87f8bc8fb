//! The position of an instant among windows aligned to the epoch, given the state's latest instant.

use crate::MAX_US;

/// The window in which a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowPosition {
    /// Number of the window since the epoch.
    pub(crate) index: u64,
    /// How far into it, in microseconds.
    pub(crate) elapsed_us: u64,
    /// How far the counted instant lies after the caller's: non-zero only after the clock stepped
    /// back.
    pub(crate) ahead_us: u64,
}

/// Places `now_us`, clamped to the state's own window. State dated more than one window ahead is
/// taken to be exactly one window ahead: a clock that leapt forward once must not lock a key out
/// for as long as the leap.
#[inline]
pub(crate) fn window_position(now_us: u64, window_us: u64, state_index: u64) -> WindowPosition {
    let index = now_us / window_us;
    if state_index <= index {
        return WindowPosition { index, elapsed_us: now_us % window_us, ahead_us: 0 };
    }
    let index = index + 1;
    WindowPosition { index, elapsed_us: 0, ahead_us: index.saturating_mul(window_us) - now_us }
}

/// Moves the window of state dated more than one window ahead of `now_us` to one window ahead, as
/// [`window_position`] does.
#[inline]
pub(crate) fn redate(state_index: &mut u64, now_us: u64, window_us: u64) -> bool {
    let ahead = now_us.min(MAX_US) / window_us + 1;
    let late = *state_index > ahead;
    *state_index = ahead.min(*state_index);
    late
}
