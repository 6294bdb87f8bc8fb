//! Fairness inside a class: the client who sends most is shed first.
//!
//! The share of a client follows core-stateless fair queueing: a request enters with the
//! probability `share / rate of its client`, and the share is adjusted until as many enter as may.
//! There are two shares. The wide one fills the queue, which is offered more than the upstream
//! completes. The narrow one divides what the upstream completes: the queue serves clients inside
//! it first, so that chance in the queue takes nothing from them.

/// Columns of a row, a power of two.
const COLUMNS: usize = 512;

/// Estimated rates of the clients of one class: two rows of counters that fade as time passes.
#[derive(Debug)]
pub(super) struct FairShare {
    rows: Box<[[u32; COLUMNS]; 2]>,
    /// Whether a counter is above zero.
    is_used: bool,
    wide: Share,
    narrow: Share,
    /// The part of the class that the upstream completes, smoothed, times 2^16.
    narrow_part: u64,
    offered: u64,
}

/// A request, times [`SCALE`].
const SCALE: u32 = 256;
/// The part of a counter that fades in a tick: a client is known by what it sent in 1.6 seconds.
const FADE: u32 = 32;
/// Ticks over which the narrow share is smoothed.
const SMOOTH: u64 = 32;
const SHARE_MAX: u64 = 1 << 40;

/// A client's share, and the number of requests that enter by it.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// The share, in the unit of the counters.
    most: u64,
    /// Requests in this tick that enter by this share, times 2^16.
    entered: u64,
}

/// The standing of a request in the shares of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FairStanding {
    /// The client sends at most its share of the upstream's completed calls.
    Inside,
    /// The client sends more, and this request may try.
    Beyond,
    Refused,
}

impl FairShare {
    pub(super) fn new() -> Self {
        let rows = Box::new([[0; COLUMNS]; 2]);
        let (wide, narrow) = (Share::OPEN, Share::OPEN);
        Self { rows, is_used: false, wide, narrow, narrow_part: CERTAIN, offered: 0 }
    }

    /// Counts a request of `client`, and decides by `random` whether it enters.
    pub(super) fn admit(&mut self, client: u64, random: u32) -> FairStanding {
        let [first, second] = &mut *self.rows;
        let first = &mut first[client as usize % COLUMNS];
        let second = &mut second[(client >> 32) as usize % COLUMNS];
        // Only the lower one grows: a collision inflates a count less.
        let count = (*first).min(*second).saturating_add(SCALE);
        *first = (*first).max(count);
        *second = (*second).max(count);
        self.is_used = true;
        self.offered += 1;
        let narrow = self.narrow.enter(count);
        let wide = self.wide.enter(count);
        match u64::from(random >> 16) < wide {
            _ if narrow == CERTAIN => FairStanding::Inside,
            true => FairStanding::Beyond,
            false => FairStanding::Refused,
        }
    }

    /// Adjusts the shares once a tick: the parts of the class that may enter, and that the upstream
    /// completes, times 2^16.
    pub(super) fn tick(&mut self, wide: u64, narrow: u64) {
        if !self.is_used {
            return;
        }
        let most = self.rows[0].iter().copied().max().unwrap_or(0);
        self.wide.adjust(wide, self.offered, most);
        // The rest for a class is a small difference of large numbers, so it is noisy.
        let smoothed = (self.narrow_part * (SMOOTH - 1) + narrow.min(CERTAIN)) / SMOOTH;
        self.narrow_part = smoothed;
        self.narrow.adjust(smoothed, self.offered, most);
        self.offered = 0;
        self.is_used = most > 0;
        self.rows.iter_mut().flatten().for_each(|count| *count -= count.div_ceil(FADE));
    }
}

/// The probability 1, times 2^16.
pub(super) const CERTAIN: u64 = 1 << 16;

impl Share {
    const OPEN: Self = Self { most: SHARE_MAX, entered: 0 };

    /// The probability with which a request of a client with this count enters, times 2^16.
    fn enter(&mut self, count: u32) -> u64 {
        let part = ((self.most << 16) / u64::from(count)).min(CERTAIN);
        self.entered += part;
        part
    }

    fn adjust(&mut self, part: u64, offered: u64, most: u32) {
        let entered = std::mem::take(&mut self.entered);
        if part >= CERTAIN {
            self.most = SHARE_MAX;
        } else if offered > 0 {
            let known = self.most.min(most.into()).max(1);
            let next = known * (offered * part) / entered.max(1);
            let next = next.clamp(known / 2, known * 2);
            self.most = ((known * 3 + next) / 4).clamp(1, SHARE_MAX);
        }
    }
}
