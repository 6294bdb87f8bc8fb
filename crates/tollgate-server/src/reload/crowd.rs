//! When many connections have ended, the memory they used goes back to the system.

/// As many connections have to end for it: fewer leave little, and trimming is not free.
const CROWD: usize = 256;
/// Looks for which the connections have to stay ended: one second. Their memory is free by then.
const SETTLED: u32 = 20;

/// Watches how many connections are open.
#[derive(Debug, Default)]
pub(super) struct CrowdWatch {
    /// The most that were open since memory was last given back.
    peak: usize,
    /// Looks since at least half of them, and a crowd, have ended.
    looks: u32,
}

impl CrowdWatch {
    /// Takes the number of connections that are open now; true when it is time to give memory back.
    pub(super) fn look(&mut self, open: usize) -> bool {
        self.peak = self.peak.max(open);
        let is_over = self.peak - open >= CROWD && open <= self.peak / 2;
        self.looks = if is_over { self.looks + 1 } else { 0 };
        if self.looks < SETTLED {
            return false;
        }
        *self = Self { peak: open, looks: 0 };
        true
    }
}

#[cfg(test)]
mod tests;
