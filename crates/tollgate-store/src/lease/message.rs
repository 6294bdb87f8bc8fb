//! The messages between a process and the ledger of one limit and key.

/// The identity of a lease: 128 random bits per start of the process, and a number that is never
/// used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// Random, drawn when the process starts.
    pub process: [u32; 4],
    /// The holder's number in the process; below 2^48.
    pub number: u64,
}

/// What the book says of a key at the end of a call (I7). In one ledger the totals only grow, so of
/// two summaries the one with the larger totals is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookSummary {
    /// Units granted in the ledger, to all holders.
    pub granted: u64,
    /// Units returned in the ledger, by all holders.
    pub returned: u64,
    /// The limit's state: the window and its counts, or the TAT.
    pub state: [u64; 3],
}

/// "In this ledger I know of so much granted and have returned so much; I want so much more."
///
/// All totals are cumulative, so a late, repeated or reordered request changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerRequest {
    /// The lease that asks.
    pub holder: Holder,
    /// The ledger that the totals belong to; zero for a holder that knows none.
    pub ledger: u64,
    /// Units received in that ledger.
    pub known_granted: u64,
    /// Units wanted beyond those. Zero only re-asserts and returns.
    pub want: u64,
    /// Of these, the units that one request needs at once.
    pub need: u64,
    /// Units returned in that ledger.
    pub returned: u64,
    /// Of these, the units whose return was acknowledged.
    pub acknowledged: u64,
    /// When the oldest unit was granted whose return is not acknowledged, by the store's clock.
    pub return_at_us: u64,
    /// The last summary that the holder received of that ledger.
    pub summary: BookSummary,
}

/// The ledger's reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerReply {
    /// The ledger that the totals belong to: the number of the window, or when it began.
    pub ledger: u64,
    /// Units granted to the holder in this ledger.
    pub granted: u64,
    /// Units returned by the holder in this ledger.
    pub returned: u64,
    /// When the oldest unit was granted that the holder did not know of, by the store's clock.
    pub oldest_grant_us: u64,
    /// For how long these units can be spent.
    pub usable_us: u64,
    /// What is left of the grace period, in which nothing is granted.
    pub grace_us: u64,
    /// Units left for all holders.
    pub left: u64,
    /// For how long the ledger is kept, at least.
    pub kept_us: u64,
    /// The age of the book.
    pub age_us: u64,
    /// Whether the store had lost writes that holders re-asserted.
    pub rolled_back: bool,
    /// Whether the holder had no entry, so that returns without acknowledgement were not credited.
    pub reinstated: bool,
    /// The book at the end of the call.
    pub summary: BookSummary,
    /// When the needed units are there again, by time alone.
    pub retry_after_us: Option<u64>,
    /// Until the limit is as if never used.
    pub reset_after_us: u64,
}

impl LedgerRequest {
    /// The request as the script reads it.
    pub fn to_script_args(&self, terms: &super::LeaseTerms) -> [u64; 20] {
        let [a, b, c, d] = self.holder.process.map(u64::from);
        let own = [a, b, c, d, self.holder.number, self.ledger, self.known_granted];
        let asked = [self.want, self.need, self.returned, self.return_at_us];
        let terms = [terms.lifetime_us, terms.grace_us, terms.reclaim_us()];
        let BookSummary { granted, returned, state: [a, b, c] } = self.summary;
        let summary = [granted, returned, a, b, c, self.acknowledged];
        let all = own.into_iter().chain(asked).chain(terms).chain(summary);
        let mut args = [0; 20];
        args.iter_mut().zip(all).for_each(|(to, n)| *to = n);
        args
    }
}

impl LedgerReply {
    /// Reads the script's reply; `None` if it is malformed.
    pub fn from_script_reply(numbers: [i64; 18]) -> Option<Self> {
        let at = |index: usize| u64::try_from(numbers[index]).ok();
        Some(Self {
            ledger: at(0)?,
            granted: at(1)?,
            returned: at(2)?,
            oldest_grant_us: at(3)?,
            usable_us: at(4)?,
            grace_us: at(5)?,
            left: at(6)?,
            kept_us: at(7)?,
            rolled_back: at(8)? != 0,
            retry_after_us: at(9),
            reset_after_us: at(10)?,
            age_us: at(11)?,
            reinstated: at(12)? != 0,
            summary: BookSummary {
                granted: at(13)?,
                returned: at(14)?,
                state: [at(15)?, at(16)?, at(17)?],
            },
        })
    }
}
