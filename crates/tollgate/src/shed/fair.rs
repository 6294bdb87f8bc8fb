//! Fairness inside a class: the client who sends most is shed first.
//!
//! The share of a client follows core-stateless fair queueing: a request enters with the
//! probability `share / rate of its client`, and the share is adjusted until as many enter as may.

/// Columns of a row, a power of two.
const COLUMNS: usize = 512;

/// Estimated counts of clients: two rows of counters, halved as time passes.
#[derive(Debug)]
pub(super) struct FairShare {
    rows: Box<[[u32; COLUMNS]; 2]>,
    /// Requests that a client may send in a period, times 256.
    share: u64,
    offered: u32,
    admitted: u32,
    ticks: u32,
}

/// Ticks between two halvings.
const PERIOD: u32 = 8;
const SHARE_MAX: u64 = 1 << 40;

impl FairShare {
    pub(super) fn new() -> Self {
        Self {
            rows: Box::new([[0; COLUMNS]; 2]),
            share: SHARE_MAX,
            offered: 0,
            admitted: 0,
            ticks: 0,
        }
    }

    /// Counts a request of `client`, and decides by `random` whether it is inside its share.
    pub(super) fn admit(&mut self, client: u64, random: u32) -> bool {
        let [first, second] = &mut *self.rows;
        let first = &mut first[client as usize % COLUMNS];
        let second = &mut second[(client >> 32) as usize % COLUMNS];
        // Only the lower one grows: a collision inflates a count less.
        let count = (*first).min(*second) + 1;
        *first = (*first).max(count);
        *second = (*second).max(count);
        let is_inside = u64::from(count) * u64::from(random >> 8) < self.share << 16;
        self.offered += 1;
        self.admitted += u32::from(is_inside);
        is_inside
    }

    /// Adjusts the share once a tick, so that `open` of `steps` requests enter.
    pub(super) fn tick(&mut self, open: u32, steps: u32) {
        let (offered, admitted) = (u64::from(self.offered), u64::from(self.admitted));
        if open >= steps {
            self.share = SHARE_MAX;
        } else if offered > 0 {
            let wanted = offered * u64::from(open.max(1));
            let known = self.share.min(u64::from(self.most()) << 8).max(1);
            let next = known * wanted / (admitted * u64::from(steps)).max(1);
            self.share = next.clamp(known / 2, known * 2).clamp(1, SHARE_MAX);
        }
        (self.offered, self.admitted) = (0, 0);
        self.ticks += 1;
        if self.ticks >= PERIOD {
            self.ticks = 0;
            self.rows.iter_mut().flatten().for_each(|count| *count /= 2);
            self.share = (self.share / 2).max(1);
        }
    }

    fn most(&self) -> u32 {
        self.rows[0].iter().copied().max().unwrap_or(0)
    }
}
