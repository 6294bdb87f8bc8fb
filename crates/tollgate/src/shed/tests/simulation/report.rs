//! The report of a run.

const SECOND_US: u64 = 1_000_000;

/// The report of a run, by class: critical, then normal.
#[derive(Debug, Default)]
pub(in crate::shed::tests) struct Report {
    pub(in crate::shed::tests) offered: [u64; 2],
    pub(in crate::shed::tests) served: [u64; 2],
    pub(in crate::shed::tests) shed: [u64; 2],
    /// Requests whose clients gave up.
    pub(in crate::shed::tests) lost: [u64; 2],
    /// Shed and served requests of the client who sends most, by class.
    pub(in crate::shed::tests) hog: [[u64; 2]; 2],
    /// Shed and served requests of all other clients, by class.
    pub(in crate::shed::tests) others: [[u64; 2]; 2],
    /// The arrival time of each request, its class, and its duration if it was served.
    pub(in crate::shed::tests) requests: Vec<(u64, u8, Option<u64>)>,
    /// The limit every 100 ms.
    pub(in crate::shed::tests) limits: Vec<u32>,
    pub(in crate::shed::tests) busy_us: u64,
    pub(in crate::shed::tests) capacity_us: u64,
}

impl Report {
    /// Shed and served requests of a class: of the client who sends most, or of the others.
    pub(in crate::shed::tests) fn of_client(&mut self, is_hog: bool, class: u8) -> &mut [u64; 2] {
        let counts = if is_hog { &mut self.hog } else { &mut self.others };
        &mut counts[usize::from(class)]
    }

    /// Served of what was decided, in hundredths of a percent.
    pub(in crate::shed::tests) fn served_bp(&self, class: usize) -> u64 {
        part_bp([self.shed[class] + self.lost[class], self.served[class]])
    }

    /// How busy the workers were, in hundredths of a percent: goodput over capacity.
    pub(in crate::shed::tests) fn busy_bp(&self) -> u64 {
        self.busy_us * 10_000 / self.capacity_us.max(1)
    }

    pub(in crate::shed::tests) fn p99_us(&self, class: Option<u8>) -> u64 {
        let of = |one: &&(u64, u8, Option<u64>)| class.is_none_or(|class| class == one.1);
        let mut all: Vec<_> = self.requests.iter().filter(of).filter_map(|one| one.2).collect();
        all.sort_unstable();
        all[all.len() * 99 / 100]
    }

    /// Requests of a class, or of all, that arrived in a second and were served.
    pub(in crate::shed::tests) fn served_in(&self, second: u64, class: Option<u8>) -> u64 {
        let is_in = |one: &&(u64, u8, Option<u64>)| {
            one.0 / SECOND_US == second && class.is_none_or(|class| class == one.1)
        };
        self.requests.iter().filter(is_in).filter(|one| one.2.is_some()).count() as u64
    }

    /// The limits between two seconds.
    pub(in crate::shed::tests) fn limits(&self, seconds: std::ops::Range<usize>) -> &[u32] {
        let end = (seconds.end * 10).min(self.limits.len());
        &self.limits[seconds.start * 10..end]
    }

    /// The mean limit between two seconds, times 10.
    pub(in crate::shed::tests) fn mean_limit_x10(&self, seconds: std::ops::Range<usize>) -> u32 {
        let limits = self.limits(seconds);
        limits.iter().sum::<u32>() * 10 / limits.len() as u32
    }
}

/// Served of what was decided, in hundredths of a percent.
pub(in crate::shed::tests) fn part_bp([shed, served]: [u64; 2]) -> u64 {
    served * 10_000 / (shed + served).max(1)
}
