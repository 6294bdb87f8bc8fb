//! Measurements at one level of requests in flight.

use super::{CALLS, LimitController, SCALE};

/// The completed calls that decide between a queue and slower calls, times 256.
pub(super) const EVIDENCE: i64 = 16 << 8;

/// The measurements at one level.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meter {
    pub(super) length_us: u64,
    pub(super) last_us: u64,
    /// Requests in flight, summed over time.
    pub(super) in_flight_us: u64,
    /// Time at the limit.
    pub(super) full_us: u64,
    pub(super) completed: u64,
    pub(super) overloaded: u64,
    /// Calls whose clients left.
    pub(super) abandoned: u64,
}

impl Meter {
    /// Adds the time since the last event, and returns it. `now_us` is no earlier than that event.
    #[inline]
    pub(super) fn advance(&mut self, now_us: u64, in_flight: u32, limit: u32) -> u64 {
        let passed_us = now_us - self.last_us;
        self.in_flight_us += passed_us * u64::from(in_flight);
        if in_flight >= limit {
            self.full_us += passed_us;
        }
        self.length_us += passed_us;
        self.last_us = now_us;
        passed_us
    }

    pub(super) fn add(&mut self, part: &Self) {
        self.length_us += part.length_us;
        self.in_flight_us += part.in_flight_us;
        self.full_us += part.full_us;
        self.completed += part.completed;
        self.overloaded += part.overloaded;
        self.abandoned += part.abandoned;
    }

    /// The measurements after `earlier`, which began at the same time.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            length_us: self.length_us - earlier.length_us,
            last_us: self.last_us,
            in_flight_us: self.in_flight_us - earlier.in_flight_us,
            full_us: self.full_us - earlier.full_us,
            completed: self.completed - earlier.completed,
            overloaded: self.overloaded - earlier.overloaded,
            abandoned: self.abandoned - earlier.abandoned,
        }
    }

    /// Calls in 2^20 us, times 256.
    pub(super) fn rate(&self) -> Option<u64> {
        (self.completed >= CALLS / 8).then(|| (self.completed << 28) / self.length_us.max(1))
    }

    /// Whether most clients leave before their calls end.
    pub(super) fn is_deserted(&self) -> bool {
        self.abandoned >= CALLS / 8 && self.abandoned * 2 > self.completed
    }

    /// Mean time of a call, by Little's law.
    pub(super) fn call_us(&self) -> u64 {
        self.in_flight_us / self.ended().max(1)
    }

    /// Mean time between two completed calls.
    pub(super) fn gap_us(&self) -> u64 {
        self.length_us / self.completed.max(1)
    }

    /// Mean requests in flight, times [`SCALE`].
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight_us * SCALE / self.length_us.max(1)
    }

    /// Evidence that calls queue inside the upstream, from measurements at a higher level. With a
    /// queue, as many calls end here as there. Without one, only the part that is in flight ends.
    /// Halfway between, by logarithms, neither is more likely.
    pub(super) fn queue_evidence(&self, higher: &Self) -> i64 {
        let part = ((self.in_flight() << 16) / higher.in_flight().max(1)).min(1 << 16);
        (self.completed << 8) as i64 - (self.calls_at_rate_of(higher) * part.isqrt()) as i64
    }

    /// The calls that would end in the time of this measurement at the rate of another.
    pub(super) fn calls_at_rate_of(&self, other: &Self) -> u64 {
        other.completed * self.length_us / other.length_us.max(1)
    }

    pub(super) fn ended(&self) -> u64 {
        self.completed + self.overloaded
    }

    /// The part of calls that failed, times 256.
    pub(super) fn failed_part(&self) -> u64 {
        self.overloaded * 256 / self.ended().max(1)
    }

    /// Whether the limit, and not the load, decided how many were in flight.
    pub(super) fn is_full(&self) -> bool {
        self.full_us * 10 >= self.length_us * 8
    }
}

impl LimitController {
    /// Begins a measurement at this time.
    pub(super) fn restart_meter(&mut self, now_us: u64) {
        self.total.add(&self.meter);
        self.meter = Meter { last_us: now_us, ..Meter::default() };
    }

    /// The measurements since the start.
    pub(super) fn total(&self) -> Meter {
        let mut total = Meter { last_us: self.meter.last_us, ..self.total };
        total.add(&self.meter);
        total
    }
}
