//! Calendar window: a fixed window that is a day, a week or a month of a time zone.
//!
//! Windows differ in length, so a window is identified by its first second.

use super::Algorithm;
use crate::{CalendarUnit, Intent, MAX_US, Outcome, Receipt, Zone};
use core::hash::{Hash, Hasher};

const SECOND_US: u64 = 1_000_000;

/// N units per day, week or month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CalendarWindow {
    limit: u32,
    unit: CalendarUnit,
    windows: Windows,
}

/// The windows of a limit.
#[derive(Clone, Copy, Debug)]
enum Windows {
    /// Windows by the rules of a time zone.
    InZone(&'static Zone),
    /// Three windows, for a store without the rules.
    Resolved(ResolvedWindows),
}

/// Three consecutive windows. Windows outside them are as long as the nearest of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ResolvedWindows {
    first_s: u64,
    /// The lengths. Only the first may be zero, at the epoch.
    lengths_s: [u32; 3],
}

/// The window last counted in, and its count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The first second of the window.
    pub start_s: u64,
    /// The units counted in the window.
    pub count: u64,
}

/// The window in which a request is counted.
struct CalendarPosition {
    start_s: u64,
    end_us: u64,
    /// The counted instant: the caller's, unless the clock stepped back.
    at_us: u64,
    /// The count in the window.
    count: u64,
}

impl CalendarWindow {
    /// Creates a limit of `limit` units per day, week or month of `zone`.
    pub const fn new(limit: u32, unit: CalendarUnit, zone: &'static Zone) -> Self {
        Self { limit, unit, windows: Windows::InZone(zone) }
    }

    /// Replaces the zone's rules with three windows: the window of `now_us`, the one before and the
    /// one after. Redis scripts and reservations use them.
    #[must_use]
    pub fn resolve_windows(&self, now_us: u64) -> Self {
        let Windows::InZone(_) = self.windows else { return *self };
        let (start_s, end_s) = self.window(now_us.min(MAX_US) / SECOND_US);
        let first_s = start_s.checked_sub(1).map_or(start_s, |before_s| self.window(before_s).0);
        let (_, last_s) = self.window(end_s);
        let length = |from_s: u64, to_s: u64| u32::try_from(to_s - from_s).unwrap_or(u32::MAX);
        let lengths_s = [length(first_s, start_s), length(start_s, end_s), length(end_s, last_s)];
        Self { windows: Windows::Resolved(ResolvedWindows { first_s, lengths_s }), ..*self }
    }

    /// Returns this limit with another count.
    #[must_use]
    pub const fn with_limit(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    /// The unit: day, week or month.
    pub const fn unit(&self) -> CalendarUnit {
        self.unit
    }

    /// The time zone; `None` once it has been replaced by [three windows](Self::resolve_windows).
    pub const fn zone(&self) -> Option<&'static Zone> {
        match self.windows {
            Windows::InZone(zone) => Some(zone),
            Windows::Resolved(_) => None,
        }
    }

    /// The three windows: the start of the first, and the length of each. All zero while the limit
    /// has the zone's rules.
    pub(crate) fn resolved_windows(&self) -> [u64; 4] {
        match self.windows {
            Windows::InZone(_) => [0; 4],
            Windows::Resolved(ResolvedWindows { first_s, lengths_s: [a, b, c] }) => {
                [first_s, a.into(), b.into(), c.into()]
            }
        }
    }

    /// The inverse of [`resolved_windows`](Self::resolved_windows); `None` for invalid values.
    pub(crate) fn from_resolved(limit: u64, unit: CalendarUnit, known: [u64; 4]) -> Option<Self> {
        let [first_s, a, b, c] = known;
        let length = |seconds: u64| u32::try_from(seconds).ok();
        let lengths_s = [length(a)?, length(b)?, length(c)?];
        let is_possible = first_s <= MAX_US / SECOND_US
            && lengths_s[1] > 0
            && lengths_s[2] > 0
            && (lengths_s[0] > 0 || first_s == 0);
        let windows = Windows::Resolved(ResolvedWindows { first_s, lengths_s });
        is_possible.then_some(Self { limit: u32::try_from(limit).ok()?, unit, windows })
    }

    /// Returns the first second of the window that contains `at_s`, and the first second after the
    /// window.
    fn window(&self, at_s: u64) -> (u64, u64) {
        match self.windows {
            Windows::InZone(zone) => {
                let span = zone.span(self.unit, at_s as i64);
                (span.start_s.max(0) as u64, span.end_s.max(0) as u64)
            }
            Windows::Resolved(known) => known.window(at_s),
        }
    }

    fn position(&self, state: &State, now_us: u64) -> CalendarPosition {
        let (start_s, end_s) = self.window(now_us / SECOND_US);
        if state.start_s < end_s {
            let count = if state.start_s >= start_s { state.count } else { 0 };
            return CalendarPosition { start_s, end_us: end_s * SECOND_US, at_us: now_us, count };
        }
        // The clock stepped back. State beyond the next window counts in the next window.
        let end_us = self.window(end_s).1 * SECOND_US;
        CalendarPosition { start_s: end_s, end_us, at_us: end_s * SECOND_US, count: state.count }
    }
}

impl ResolvedWindows {
    fn window(&self, at_s: u64) -> (u64, u64) {
        let Self { first_s, lengths_s } = *self;
        if at_s < first_s {
            let length_s = u64::from(lengths_s[0]).max(1);
            let before = (first_s - at_s).div_ceil(length_s) * length_s;
            return (first_s.saturating_sub(before), first_s.saturating_sub(before - length_s));
        }
        let mut start_s = first_s;
        for length_s in lengths_s.map(u64::from) {
            if at_s < start_s + length_s {
                return (start_s, start_s + length_s);
            }
            start_s += length_s;
        }
        let length_s = u64::from(lengths_s[2]).max(1);
        start_s += (at_s - start_s) / length_s * length_s;
        (start_s, start_s + length_s)
    }
}

impl Algorithm for CalendarWindow {
    type State = State;

    fn capacity(&self) -> u64 {
        self.limit.into()
    }

    fn window_us(&self) -> Option<u64> {
        Some(self.unit.nominal_us())
    }

    fn redate(&self, state: &mut State, now_us: u64) -> bool {
        // The end of the current window is the start of the next.
        let (_, next_s) = self.window(now_us.min(MAX_US) / SECOND_US);
        let late = state.start_s > next_s;
        state.start_s = state.start_s.min(next_s);
        late
    }

    fn decide(&self, state: &State, now_us: u64, cost: u64, intent: Intent) -> Outcome {
        let now_us = now_us.min(MAX_US);
        let placed = self.position(state, now_us);
        let (limit, count) = (self.capacity(), placed.count);
        let admitted = cost == 0 || count.saturating_add(cost) <= limit;
        let after = if admitted && intent == Intent::Take { count + cost } else { count };
        let left_us = placed.end_us - now_us;
        Outcome {
            admitted,
            limit,
            remaining: limit.saturating_sub(after),
            retry_after_us: if admitted { Some(0) } else { (cost <= limit).then_some(left_us) },
            reset_after_us: left_us,
            delay_us: 0,
            more_after_us: (after > 0 && limit > 0).then_some(left_us),
        }
    }

    fn charge(&self, state: &mut State, now_us: u64, cost: u64) -> Receipt {
        let placed = self.position(state, now_us.min(MAX_US));
        if cost > 0 {
            let count = placed.count.saturating_add(cost).min(MAX_US);
            *state = State { start_s: placed.start_s, count };
        }
        Receipt { cost, at_us: placed.at_us, ..Receipt::default() }
    }

    fn give_back(&self, state: &mut State, now_us: u64, units: u64, receipt: &Receipt) {
        let (start_s, end_s) = self.window(receipt.at_us / SECOND_US);
        let is_same = start_s <= state.start_s && state.start_s < end_s;
        if is_same && now_us / SECOND_US < end_s {
            state.count = state.count.saturating_sub(units);
        }
    }

    fn idle_at_us(&self, state: &State) -> u64 {
        match state.count {
            0 => state.start_s * SECOND_US,
            _ => self.window(state.start_s).1 * SECOND_US,
        }
    }
}

// Compares pointers first: rules are long, and equal zones are usually the same static value.
impl PartialEq for Windows {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::InZone(a), Self::InZone(b)) => core::ptr::eq(*a, *b) || a == b,
            (Self::Resolved(a), Self::Resolved(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Windows {}

impl Hash for Windows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::InZone(zone) => zone.name().hash(state),
            Self::Resolved(known) => known.hash(state),
        }
    }
}

#[cfg(test)]
mod tests;
