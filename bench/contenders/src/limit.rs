//! The one limit that all contenders enforce.

/// So many units a period after a burst.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Units a period.
    pub count: u32,
    /// In seconds.
    pub period_s: u32,
    /// Units at one instant.
    pub burst: u32,
}

impl Limit {
    /// Admits a thousand million requests before it refuses one, and a request is owed for 0.36 s, so the state of a
    /// key never becomes idle while a row is measured: nobody may answer "new key" from an empty cell.
    pub const OPEN: Self = Self { count: 10_000, period_s: 3_600, burst: 1_000_000_000 };

    /// Admits one request an hour, so a flood is refused.
    pub const SHUT: Self = Self { count: 1, period_s: 3_600, burst: 1 };
}
