//! Snapshot of a shedder's counters.

/// The state of a shedder at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShedSnapshot {
    /// The current limit of requests in flight.
    pub limit: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests in the queue.
    pub waiting: usize,
    /// Whether the demand exceeds the upstream's completed calls.
    pub is_overloaded: bool,
    /// Counts by class, the most important first.
    pub classes: Vec<ClassCounts>,
}

/// Counts of one class since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassCounts {
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests that entered.
    pub offered: u64,
    /// Requests that were admitted.
    pub admitted: u64,
    /// Requests shed because the limit was reached.
    pub shed_adaptive: u64,
    /// Requests shed in the queue.
    pub shed_queue: u64,
    /// The sum of the times that admitted requests waited.
    pub queue_us: u64,
}
