//! The end of an outage: the limit returns to what it was before calls failed.
//!
//! Errors lower the limit, whatever their reason is. But an upstream that was down says nothing
//! about the calls that it can take: after a restart, these are as many as before. So the limit
//! returns as soon as some calls succeed in a row. If calls fail again at once, the load is the
//! reason: the next return waits, and the limit climbs meanwhile.

use super::{LimitController, LoadView, Meter, SearchStage};

/// Tells an outage from an overload. An upstream that is down takes no call: each one fails, and
/// quickly. One that is overloaded completes as many as before, or lets calls wait until they fail.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// All measurements when this window began, with the requests in flight and the quick failures.
    start: Meter,
    in_flight: u32,
    start_quick: u64,
    /// Failures, so far, of calls that took no longer than others take at rest.
    quick: u64,
    /// Mean time between two calls that ended, before calls failed.
    gap_us: u64,
    /// Whether the upstream took no call in the last window.
    was_down: bool,
    /// The same, once failures in a later tick confirm it: without them the upstream came back in
    /// this window, which is no sign of an overload.
    is_down: bool,
    /// All measurements at the last tick with failures, and its time.
    failed: Meter,
    failed_us: u64,
    /// Calls that began later and succeeded.
    streak: u64,
    returned_us: u64,
    /// The time before which the limit does not return, because the last return made calls fail.
    next_us: u64,
    pause_us: u64,
}

/// Failures, and calls that would have ended, in a window that shows whether the upstream is down.
const OUTAGE_CALLS: u64 = 16;
/// The longest such window.
const OUTAGE_US: u64 = 2_000_000;
/// A failure within this time is quick, however long calls take.
const QUICK_US: u64 = 20_000;
/// Calls that succeed in a row before the limit returns.
const STREAK_CALLS: u64 = 4;
/// Calls that fail so soon after a return, or within two more calls, fail because of it.
const BLAME_US: u64 = 2_000_000;
/// The time from a return that made calls fail to the next one: doubles each time.
const PAUSE_US: (u64, u64) = (4_000_000, 64_000_000);

impl Outage {
    fn restart(&mut self, total: Meter, in_flight: u32) {
        (self.start, self.in_flight, self.start_quick) = (total, in_flight, self.quick);
    }

    /// Decides whether the upstream is down, if there were enough failures.
    fn judge(&mut self, total: Meter, in_flight: u32) {
        let window = total.since(&self.start);
        let failed = window.overloaded;
        let long_us = (OUTAGE_CALLS * self.gap_us).min(OUTAGE_US);
        if failed < OUTAGE_CALLS || window.length_us < long_us {
            return;
        }
        // Calls from before may still end well.
        let taken = (window.completed + u64::from(in_flight)).saturating_sub(self.in_flight.into());
        let expected = window.length_us / self.gap_us.max(1);
        let is_quick = (self.quick - self.start_quick) * 4 >= failed * 3;
        self.was_down = is_quick && taken * 8 <= expected.min(failed);
        self.restart(total, in_flight);
    }

    /// Notes that calls begin to fail.
    pub(super) fn blame(&mut self, meter: &Meter) {
        let now_us = meter.last_us;
        if now_us < self.returned_us + BLAME_US + 2 * meter.call_us() {
            self.pause_us = (2 * self.pause_us).clamp(PAUSE_US.0, PAUSE_US.1);
            self.next_us = now_us + self.pause_us;
        } else if now_us > self.next_us + 2 * self.pause_us {
            self.pause_us = 0;
        }
    }
}

impl LimitController {
    /// Notes how long a call took that failed.
    pub(in super::super) fn failed_after(&mut self, took_us: u64) {
        self.errors.outage.quick += u64::from(took_us <= self.rest_call_us.max(QUICK_US));
    }

    /// Notes a call that succeeded. Calls from before an outage may succeed in it.
    #[inline]
    pub(in super::super) fn succeeded(&mut self, admitted_us: u64) {
        let outage = &mut self.errors.outage;
        outage.streak += u64::from(admitted_us > outage.failed_us);
    }

    /// Returns to the limit from before an outage, once calls succeed in a row. Called once a tick;
    /// returns whether the limit returned.
    pub(in super::super) fn end_outage(&mut self, now_us: u64, load: LoadView) -> bool {
        let total = self.total();
        let outage = &mut self.errors.outage;
        let Some(before) = self.errors.lowered else {
            outage.gap_us = if total.completed > 0 { load.gap_us } else { 0 };
            (outage.is_down, outage.was_down, outage.failed) = (false, false, total);
            outage.restart(total, load.in_flight);
            return false;
        };
        let since = total.since(&outage.failed);
        if since.overloaded * 256 > since.ended() * self.errors.part {
            outage.is_down = outage.was_down;
            outage.judge(total, load.in_flight);
            (outage.failed, outage.failed_us, outage.streak) = (total, now_us, 0);
            return false;
        }
        if !outage.is_down || outage.streak < STREAK_CALLS || now_us < outage.next_us {
            return false;
        }
        outage.returned_us = now_us;
        self.errors.ceiling.until_us = now_us;
        (self.errors.lowered, self.errors.lowest) = (None, Meter::default());
        self.set_knee(before.knee);
        self.is_found = before.is_found;
        // A limit that is a guess goes on to climb. Meanwhile requests wait, and none is refused.
        let next = if self.is_found { SearchStage::Rest } else { SearchStage::ClimbSettle };
        self.enter(now_us, next, load);
        true
    }
}
