//! Memory trim: returns free memory to the system after many connections have closed.

/// The least number of closed connections for a trim.
const CLOSED_MIN: u64 = 256;
/// Ticks for which the connections must stay closed: one second.
const SETTLED_TICKS: u32 = 20;

/// Decides when to trim, from the number of open connections.
#[derive(Debug, Default)]
pub(super) struct MemoryTrimTrigger {
    /// The most open connections since the last trim.
    peak: u64,
    /// Ticks since half of the peak, and at least [`CLOSED_MIN`], have closed.
    settled_ticks: u32,
}

impl MemoryTrimTrigger {
    /// Updates the number of open connections. Returns whether to trim.
    pub(super) fn tick(&mut self, open: u64) -> bool {
        self.peak = self.peak.max(open);
        let is_over = self.peak - open >= CLOSED_MIN && open <= self.peak / 2;
        self.settled_ticks = if is_over { self.settled_ticks + 1 } else { 0 };
        if self.settled_ticks < SETTLED_TICKS {
            return false;
        }
        *self = Self { peak: open, settled_ticks: 0 };
        true
    }
}

#[cfg(test)]
mod tests;
