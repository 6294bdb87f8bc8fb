//! When many connections have ended, the memory they used goes back to the system.

/// As many connections have to end for it: fewer leave little, and trimming is not free.
const CLOSED_MIN: usize = 256;
/// Looks for which the connections have to stay ended: one second. Their memory is free by then.
const SETTLED_TICKS: u32 = 20;

/// Watches how many connections are open.
#[derive(Debug, Default)]
pub(super) struct MemoryTrimTrigger {
    /// The most that were open since memory was last given back.
    peak: usize,
    /// Looks since at least half of them, and a crowd, have ended.
    settled_ticks: u32,
}

impl MemoryTrimTrigger {
    /// Takes the number of connections that are open now; true when it is time to give memory back.
    pub(super) fn tick(&mut self, open: usize) -> bool {
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
