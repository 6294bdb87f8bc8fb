//! Outcomes of decisions, and receipts of charges.

/// Whether an admission consumes units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// An admission consumes units; the outcome shows the state afterwards.
    Take,
    /// Nothing is consumed; the outcome shows the current state.
    Peek,
}

/// One limit's decision for one cost at one instant. Durations start at the caller's `now_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Whether the limit alone admits the cost.
    pub admitted: bool,
    /// The capacity to show: the window's count, the burst, burst plus queue, or the slots.
    pub limit: u64,
    /// The units that requests of one unit could still take: after an admission, or now on a
    /// refusal or peek.
    pub remaining: u64,
    /// The time until the cost would be admitted: zero if admitted, `None` if no wait helps.
    pub retry_after_us: Option<u64>,
    /// The time until the limit is as good as unused.
    pub reset_after_us: u64,
    /// The delay for an admitted request; zero unless the limit shapes traffic.
    pub delay_us: u64,
    /// The time until more than `remaining` units are available; `None` if all are, or if only a
    /// release helps.
    pub more_after_us: Option<u64>,
}

impl Outcome {
    /// The outcome of a limit that cannot be decided and admits meanwhile. Only its capacity is
    /// known.
    pub const fn admitting(limit: u64) -> Self {
        Self {
            admitted: true,
            limit,
            remaining: limit,
            retry_after_us: Some(0),
            reset_after_us: 0,
            delay_us: 0,
            more_after_us: None,
        }
    }

    /// The outcome of a limit that cannot be decided and refuses for `retry_after_us`.
    pub const fn refusing(limit: u64, retry_after_us: u64) -> Self {
        Self {
            admitted: false,
            limit,
            remaining: 0,
            retry_after_us: Some(retry_after_us),
            reset_after_us: retry_after_us,
            delay_us: 0,
            more_after_us: Some(retry_after_us),
        }
    }

    /// Returns this outcome for a key whose block ends in `left_us`.
    ///
    /// Wait, reset and draft-11 `t` give the same instant: the end of the block, or of the
    /// algorithm's own wait if that is later. With different instants, a client might return while
    /// it is still blocked.
    #[must_use]
    pub const fn in_block(self, left_us: u64) -> Self {
        let (retry_after_us, until_us) = match self.retry_after_us {
            Some(own_us) if own_us > left_us => (Some(own_us), own_us),
            Some(_) => (Some(left_us), left_us),
            None => (None, left_us),
        };
        Self {
            admitted: false,
            limit: self.limit,
            remaining: 0,
            retry_after_us,
            reset_after_us: until_us,
            delay_us: 0,
            more_after_us: Some(until_us),
        }
    }
}

/// The receipt of a charge, for a later give-back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The units charged.
    pub cost: u64,
    /// The instant at which the charge was counted: the caller's, or the state's own if that is
    /// later.
    pub at_us: u64,
    /// The expiry of a slot, or the whole microseconds of the bucket's TAT after the charge.
    pub mark_us: u64,
    /// The fraction of the bucket's TAT, in units of the limit's `1 / scale`.
    pub mark_fraction: u32,
    /// Whether the charge is in state that keys share, because the store has no room for more.
    pub is_shared: bool,
}
