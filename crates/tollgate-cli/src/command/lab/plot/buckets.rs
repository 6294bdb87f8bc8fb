//! Counts over time in bounded memory: the buckets grow wider when they no longer cover the whole
//! time.

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Widths for counting. Each divides the next, so that narrow buckets can be merged into wide ones.
const COUNTED_US: [u64; 15] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    SECOND,
    10 * SECOND,
    MINUTE,
    10 * MINUTE,
    HOUR,
    6 * HOUR,
    DAY,
    10 * DAY,
    100 * DAY,
];

/// Widths for display: usual units of time.
#[rustfmt::skip]
const SHOWN_US: [u64; 43] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500,
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND, 30 * SECOND,
    MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
    DAY, 2 * DAY, 5 * DAY, 10 * DAY, 20 * DAY, 50 * DAY, 100 * DAY, 1_000 * DAY,
];

/// The most buckets in use. The widest buckets cover all of time with fewer.
const IN_USE_MAX: u64 = 1_200;
/// The most buckets displayed: few enough that each can be seen and pointed at.
const SHOWN_MAX: u64 = 120;

/// The requests in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
}

impl Count {
    pub(crate) fn total(self) -> u64 {
        self.admitted + self.refused
    }

    /// Counts one request.
    pub(crate) fn count(&mut self, admitted: bool) {
        *(if admitted { &mut self.admitted } else { &mut self.refused }) += 1;
    }

    /// Adds two counts.
    pub(crate) fn plus(self, other: Self) -> Self {
        let admitted = self.admitted + other.admitted;
        Self { admitted, refused: self.refused + other.refused }
    }
}

/// Counts for several series in buckets of one width, aligned to the epoch.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    series: usize,
    width_us: u64,
    /// The number of the first bucket since the epoch.
    first: u64,
    /// The counts, bucket by bucket, with all series of a bucket together.
    counts: Vec<Count>,
}

impl Buckets {
    pub(crate) fn new(series: usize) -> Self {
        Self { series, width_us: COUNTED_US[0], first: 0, counts: Vec::new() }
    }

    /// Returns the counts of the bucket that contains an instant, one for each series.
    pub(crate) fn at(&mut self, time_us: u64) -> &mut [Count] {
        let start = self.reach(time_us) * self.series;
        &mut self.counts[start..start + self.series]
    }

    /// The number of buckets.
    pub(crate) fn len(&self) -> usize {
        self.counts.len() / self.series
    }

    pub(crate) fn width_us(&self) -> u64 {
        self.width_us
    }

    pub(crate) fn start_us(&self) -> u64 {
        self.first * self.width_us
    }

    /// The counts of one series, bucket by bucket.
    pub(crate) fn series(&self, index: usize) -> impl Iterator<Item = Count> + '_ {
        self.counts.chunks_exact(self.series).map(move |bucket| bucket[index])
    }

    /// The sum of one series.
    pub(crate) fn total(&self, index: usize) -> Count {
        self.series(index).fold(Count::default(), Count::plus)
    }

    /// Merges the counts into as few buckets as fit a picture.
    pub(crate) fn for_show(&self) -> Self {
        let last = self.first + (self.len() as u64).saturating_sub(1);
        let fits = |width_us: u64| {
            let per = width_us / self.width_us;
            last / per - self.first / per < SHOWN_MAX
        };
        let width_us = SHOWN_US
            .into_iter()
            .find(|&width_us| width_us.is_multiple_of(self.width_us) && fits(width_us))
            .unwrap_or(self.width_us);
        let mut shown = self.clone();
        shown.widen(width_us);
        shown
    }

    /// Makes room for the bucket of an instant, and returns its index.
    fn reach(&mut self, time_us: u64) -> usize {
        loop {
            let bucket = time_us / self.width_us;
            if let Some(index) = bucket.checked_sub(self.first)
                && index < self.len() as u64
            {
                return index as usize;
            }
            if self.counts.is_empty() {
                self.first = bucket;
            }
            let end = self.first + self.len() as u64;
            let (first, end_needed) = (self.first.min(bucket), end.max(bucket + 1));
            if end_needed - first <= IN_USE_MAX {
                let before = (self.first - first) as usize * self.series;
                let len = (end_needed - first) as usize * self.series;
                self.counts.splice(0..0, std::iter::repeat_n(Count::default(), before));
                self.counts.resize(len, Count::default());
                self.first = first;
                return (bucket - first) as usize;
            }
            let wider = COUNTED_US.into_iter().find(|&width_us| width_us > self.width_us);
            self.widen(wider.unwrap_or(100 * self.width_us));
        }
    }

    /// Merges the counts into wider buckets; `width_us` is a multiple of the current width.
    fn widen(&mut self, width_us: u64) {
        let per = width_us / self.width_us;
        let first = self.first / per;
        let mut counts: Vec<Count> = Vec::new();
        for (index, bucket) in self.counts.chunks_exact(self.series).enumerate() {
            let start = ((self.first + index as u64) / per - first) as usize * self.series;
            counts.resize(start + self.series, Count::default());
            for (sum, &count) in counts[start..].iter_mut().zip(bucket) {
                *sum = sum.plus(count);
            }
        }
        (self.width_us, self.first, self.counts) = (width_us, first, counts);
    }
}

#[cfg(test)]
mod tests;
