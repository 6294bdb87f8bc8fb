//! The position of an instant among windows aligned to the epoch, given the state's latest instant.

use super::muldiv::Divisor;
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
pub(crate) fn window_position(now_us: u64, window_us: Divisor, state_index: u64) -> WindowPosition {
    let (index, elapsed_us) = window_us.div_rem(now_us);
    if state_index <= index {
        return WindowPosition { index, elapsed_us, ahead_us: 0 };
    }
    WindowPosition { index: index + 1, elapsed_us: 0, ahead_us: window_us.get() - elapsed_us }
}

/// Moves the window of state dated more than one window ahead of `now_us` to one window ahead, as
/// [`window_position`] does.
#[inline]
pub(crate) fn redate(state_index: &mut u64, now_us: u64, window_us: Divisor) -> bool {
    let ahead = window_us.div_rem(now_us.min(MAX_US)).0 + 1;
    let late = *state_index > ahead;
    *state_index = ahead.min(*state_index);
    late
}
