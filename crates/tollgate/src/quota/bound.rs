//! What any interval of a given length can admit at most.

use super::{Algorithm, Amount, Quota};
use std::time::Duration;

/// See [`Quota::bound`]. A window of T microseconds holds T instants, the first and the last of
/// them T - 1 apart.
pub(super) fn bound(quota: &Quota, window: Duration) -> Option<u64> {
    let Amount::Rate(rate) = quota.amount else { return None };
    let instants = window.as_nanos().div_ceil(1_000);
    let Some(span) = instants.checked_sub(1) else { return Some(0) };
    let (count, period) = (u128::from(rate.count()), u128::from(rate.period_us()));
    let most = match quota.algorithm() {
        // The previous window's count weighs in full at the first instant of the next one, so the
        // ramp begins an instant later.
        Algorithm::SlidingWindow => count + times_over(count, span.saturating_sub(1), period),
        Algorithm::FixedWindow => count * (1 + span.div_ceil(period)),
        Algorithm::SlidingLog => count * instants.div_ceil(period),
        // A bucket of one is full again at a fraction of a microsecond, and what would flow in
        // until the next is lost.
        _ if quota.capacity() == 1 => 1 + span / period.div_ceil(count),
        _ => u128::from(quota.capacity()) + times_over(count, span, period),
    };
    Some(u64::try_from(most).unwrap_or(u64::MAX))
}

/// `count * span / period`, rounded down. A span has at most 84 bits and a count 32, so the product
/// fits.
fn times_over(count: u128, span: u128, period: u128) -> u128 {
    count * span / period
}
