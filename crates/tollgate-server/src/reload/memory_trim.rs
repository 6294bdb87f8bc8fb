//! Memory trim: returns free memory to the system after many connections closed.

/// Fewer closed connections are not worth a trim.
const CLOSED_MIN: u64 = 256;
/// Ticks for which the connections have to stay closed: one second.
const SETTLED_TICKS: u32 = 20;

/// Decides when to trim, by the number of open connections.
#[derive(Debug, Default)]
pub(super) struct MemoryTrimTrigger {
    /// The most open connections since the last trim.
    peak: u64,
    /// Ticks since half of them, and at least [`CLOSED_MIN`], closed.
    settled_ticks: u32,
}

impl MemoryTrimTrigger {
    /// Takes the number of open connections. True when memory should be trimmed.
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
