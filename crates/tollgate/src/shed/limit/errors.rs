//! Errors of the upstream lower the limit, unless fewer requests in flight avoid none of them.
//!
//! One broken endpoint answers 503 whatever the load is. Errors that remain at the lowest limit are
//! no overload: that part of the calls may fail from then on, and only more counts.

use super::outage::Outage;
use super::{CALLS, LimitController, Meter, SCALE};

/// The part of calls that fails at any limit.
#[derive(Debug, Default)]
pub(super) struct ErrorTolerance {
    /// The tolerated part, times 256. Follows the failures, up to `proven`.
    pub(super) part: u64,
    /// The part that failed at the lowest limit, times 256.
    proven: u64,
    pub(super) lowered: Option<LoweredLimit>,
    /// Calls at the lowest limit, while it fails.
    pub(super) lowest: Meter,
    pub(super) ceiling: Ceiling,
    pub(super) outage: Outage,
}

/// A level above which no level is tried for a while, because calls failed there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ceiling {
    level: u32,
    hold_us: u64,
    pub(super) until_us: u64,
}

/// The shortest and the longest hold of a ceiling: it doubles each time that calls fail again above
/// it.
const HOLD_US: (u64, u64) = (1_000_000, 8_000_000);

impl Ceiling {
    fn lower(&mut self, level: u32, now_us: u64) {
        let hold_us = match now_us {
            // Continuous errors are no new information.
            _ if now_us < self.until_us => self.hold_us,
            _ if now_us < self.until_us + 2 * self.hold_us => self.hold_us * 2,
            _ => HOLD_US.0,
        };
        let hold_us = hold_us.clamp(HOLD_US.0, HOLD_US.1);
        *self = Self { level, hold_us, until_us: now_us + hold_us };
    }
}

/// The limit before errors lowered it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoweredLimit {
    pub(super) knee: u64,
    pub(super) is_found: bool,
    /// The first calls with too many failures among them.
    meter: Meter,
}

/// The tolerated maximum, times 256. If more calls fail at the lowest limit, the upstream is down,
/// and fewer calls help it to start.
const TOLERATED_MAX: u64 = 192;
/// The margin for chance in the failing part, times 256.
const TOLERATED_MORE: u64 = 16;

impl LimitController {
    /// The highest level to try.
    pub(super) fn ceiling(&self) -> u32 {
        let Ceiling { level, until_us, .. } = self.errors.ceiling;
        match self.meter.last_us < until_us {
            true => level.clamp(self.min, self.max),
            false => self.max,
        }
    }

    /// Whether errors are tolerated, so that they count as work that was done.
    #[inline]
    pub(in super::super) fn tolerates_errors(&self) -> bool {
        self.errors.part > 0
    }

    /// Whether so many calls failed that it is no accident, and more than are tolerated.
    pub(super) fn is_failing(&self, meter: &Meter) -> bool {
        let ended = meter.ended();
        let tolerated = ended * self.errors.part / 256;
        // Two standard deviations of a part that may fail by chance, and two more.
        let chance = if tolerated > 0 { 2 * ended.isqrt() } else { 0 };
        let excess = meter.overloaded.saturating_sub(tolerated);
        meter.is_deserted() || excess >= chance.max(4) && excess * 8 >= meter.completed
    }

    /// Lowers the knee because calls failed, and notices when that does not help.
    pub(super) fn back_off(&mut self, meter: Meter) {
        let Self { knee, is_found, .. } = *self;
        let is_lowest = self.high_level <= self.min;
        if self.errors.lowered.is_none() {
            self.errors.outage.blame(&meter);
        }
        let lowered = LoweredLimit { knee, is_found, meter: Meter::default() };
        let lowered = self.errors.lowered.get_or_insert(lowered);
        if lowered.meter.ended() < CALLS {
            lowered.meter.add(&meter);
        }
        let before = *lowered;
        self.set_knee((knee - knee / 8).max(u64::from(self.min) * SCALE / 2));
        self.errors.ceiling.lower(self.high_level, self.meter.last_us);
        (self.estimates, self.is_wide) = (0, true);
        (self.is_found, self.climbed) = (false, None);
        if is_lowest {
            self.errors.lowest.add(&meter);
            self.tolerate(before);
        }
    }

    /// Tolerates what fails at the lowest limit.
    fn tolerate(&mut self, before: LoweredLimit) {
        let lowest = self.errors.lowest;
        if lowest.ended() < CALLS {
            return;
        }
        let part = lowest.failed_part();
        let errors = &mut self.errors;
        errors.lowest = Meter::default();
        if part > TOLERATED_MAX {
            return;
        }
        errors.lowered = None;
        errors.proven = part + TOLERATED_MORE;
        errors.part = errors.proven;
        errors.ceiling = Ceiling::default();
        // If fewer failed than before, the limit climbs from here.
        if part * 4 >= before.meter.failed_part() * 3 {
            self.set_knee(before.knee);
            self.is_found = before.is_found;
        }
    }

    /// Notes calls with few enough failures among them.
    pub(super) fn endure(&mut self, meter: &Meter) {
        if meter.ended() < CALLS {
            return;
        }
        let errors = &mut self.errors;
        (errors.lowered, errors.lowest) = (None, Meter::default());
        // Without errors the part falls to zero, and the next ones count in full.
        errors.part = ((errors.part * 7 + meter.failed_part()) / 8).min(errors.proven);
    }
}
