//! The limit that all contenders enforce.

/// A rate and a burst.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Units per period.
    pub count: u32,
    /// The period in seconds.
    pub period_s: u32,
    /// The burst in units.
    pub burst: u32,
}

impl Limit {
    /// Admits a billion requests before it refuses one. A request is owed for 0.36 s, so the state
    /// of a key never becomes idle during a row: no contender may answer "new key" from an empty
    /// cell.
    pub const OPEN: Self = Self { count: 10_000, period_s: 3_600, burst: 1_000_000_000 };

    /// Admits one request an hour, so a flood is refused.
    pub const SHUT: Self = Self { count: 1, period_s: 3_600, burst: 1 };
}
