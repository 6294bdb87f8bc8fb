//! The position of an instant among windows aligned to the epoch.

use super::muldiv::Divisor;
use crate::MAX_US;

/// The window in which a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowPosition {
    /// The number of the window since the epoch.
    pub(crate) index: u64,
    /// The time since the start of the window, in microseconds.
    pub(crate) elapsed_us: u64,
    /// The time from the caller's instant to the counted one: nonzero only after the clock stepped
    /// back.
    pub(crate) ahead_us: u64,
}

/// The bits of the number of a window since the epoch, up to [`MAX_US`].
pub(crate) const fn index_bits(window_us: u64) -> u32 {
    MAX_US.ilog2() + 1 - window_us.ilog2()
}

/// Returns the position of `now_us`, or of the state's window if that is later. State dated more
/// than one window ahead counts as one window ahead. So a clock that once was far ahead does not
/// lock a key out.
#[inline]
pub(crate) fn window_position(now_us: u64, window_us: Divisor, state_index: u64) -> WindowPosition {
    let (index, elapsed_us) = window_us.div_rem(now_us);
    if state_index <= index {
        return WindowPosition { index, elapsed_us, ahead_us: 0 };
    }
    WindowPosition { index: index + 1, elapsed_us: 0, ahead_us: window_us.get() - elapsed_us }
}

/// Moves state dated more than one window ahead of `now_us` to one window ahead, as
/// [`window_position`] does. Returns whether it moved.
#[inline]
pub(crate) fn redate(state_index: &mut u64, now_us: u64, window_us: Divisor) -> bool {
    let ahead = window_us.div_rem(now_us.min(MAX_US)).0 + 1;
    let late = *state_index > ahead;
    *state_index = ahead.min(*state_index);
    late
}
