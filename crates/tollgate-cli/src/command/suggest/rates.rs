//! The peak rates of each key, in a second, a minute and an hour.

use rustc_hash::FxHashMap;

/// The most keys that are counted separately.
const KEYS_MAX: usize = 1 << 19;

/// The windows in microseconds, aligned to the epoch.
pub(super) const WINDOWS_US: [u64; 3] = [1_000_000, 60_000_000, 3_600_000_000];
/// The indices of the windows.
pub(super) const SECOND: usize = 0;
pub(super) const MINUTE: usize = 1;
pub(super) const HOUR: usize = 2;

/// The peaks of each key.
#[derive(Debug, Default)]
pub(super) struct PeakRates {
    by_key: FxHashMap<u64, KeyPeaks>,
    /// Requests of keys that are not counted separately.
    pub(super) untold: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct KeyPeaks {
    window: [u64; 3],
    units: [u64; 3],
    peak: [u64; 3],
}

/// A sorted distribution over keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Distribution(Vec<u64>);

impl PeakRates {
    /// Counts a request. If time goes back a little, the request counts in the current window.
    pub(super) fn count(&mut self, key: u64, time_us: u64, units: u64) {
        if self.by_key.len() >= KEYS_MAX && !self.by_key.contains_key(&key) {
            self.untold += 1;
            return;
        }
        let peaks = self.by_key.entry(key).or_default();
        for (place, window_us) in WINDOWS_US.into_iter().enumerate() {
            let window = time_us / window_us;
            if window > peaks.window[place] {
                (peaks.window[place], peaks.units[place]) = (window, 0);
            }
            peaks.units[place] += units;
            peaks.peak[place] = peaks.peak[place].max(peaks.units[place]);
        }
    }

    /// The distribution of the keys' peaks in a window.
    pub(super) fn distribution(&self, window: usize) -> Distribution {
        let mut peaks: Vec<u64> = self.by_key.values().map(|peaks| peaks.peak[window]).collect();
        peaks.sort_unstable();
        Distribution(peaks)
    }
}

impl Distribution {
    /// The number of keys.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value that `per_mille` of the keys do not exceed.
    pub(super) fn at(&self, per_mille: usize) -> u64 {
        let rank = (self.0.len() * per_mille).div_ceil(1_000);
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }

    pub(super) fn max(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// The values above a bound, in ascending order.
    pub(super) fn above(&self, value: u64) -> &[u64] {
        &self.0[self.0.partition_point(|known| *known <= value)..]
    }
}

#[cfg(test)]
mod tests;
