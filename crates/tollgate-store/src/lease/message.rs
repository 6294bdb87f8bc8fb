//! Messages between a process and the ledger of one limit and key.

/// The identity of a lease: 128 random bits per start of the process, and a number that is never
/// reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// Random, drawn when the process starts.
    pub process: [u32; 4],
    /// The holder's number in the process; below 2^48.
    pub number: u64,
}

/// The summary of a key's book at the end of a call (I7). Totals only grow in one ledger, so the
/// summary with the larger totals is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookSummary {
    /// Units granted in the ledger, to all holders.
    pub granted: u64,
    /// Units returned in the ledger, by all holders.
    pub returned: u64,
    /// The number of the call in the ledger, for all holders.
    pub calls: u64,
    /// The limit's state: the window and its counts, or the TAT.
    pub state: [u64; 3],
}

/// A holder's request: the units it knows of, the units it has returned, and the units it wants.
///
/// All totals are cumulative, so a late, repeated or reordered request changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerRequest {
    /// The lease that sends the request.
    pub holder: Holder,
    /// The ledger of the totals; zero for a holder that knows none.
    pub ledger: u64,
    /// Units received in this ledger.
    pub known_granted: u64,
    /// Units wanted beyond those. Zero: the request only re-asserts and returns.
    pub want: u64,
    /// The part of `want` that one request needs at once.
    pub need: u64,
    /// Units returned in this ledger.
    pub returned: u64,
    /// The part of `returned` that was acknowledged.
    pub acknowledged: u64,
    /// The grant time, by the store's clock, of the oldest unit returned without acknowledgement.
    pub return_at_us: u64,
    /// The last summary of this ledger that the process received.
    pub summary: BookSummary,
    /// The number of the last call that was answered to this holder; zero if none was.
    pub last_call: u64,
}

/// The ledger's reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerReply {
    /// The ledger of the totals: the number of the window, or the start of the ledger.
    pub ledger: u64,
    /// Units granted to the holder in this ledger.
    pub granted: u64,
    /// Units returned by the holder in this ledger.
    pub returned: u64,
    /// The grant time, by the store's clock, of the oldest unit that the holder did not know.
    pub oldest_grant_us: u64,
    /// The time for which these units can be spent.
    pub usable_us: u64,
    /// The rest of the grace period, in which nothing is granted.
    pub grace_us: u64,
    /// Units left for all holders.
    pub left: u64,
    /// The least time for which the ledger is kept.
    pub kept_us: u64,
    /// The age of the book.
    pub age_us: u64,
    /// Whether the store had lost writes that holders re-asserted.
    pub rolled_back: bool,
    /// Whether the holder had no entry, so that unacknowledged returns were not credited.
    pub reinstated: bool,
    /// The book at the end of the call.
    pub summary: BookSummary,
    /// The wait until the needed units are available, by refill alone.
    pub retry_after_us: Option<u64>,
    /// The time until the limit is as if never used.
    pub reset_after_us: u64,
}

impl LedgerRequest {
    /// Encodes the request for the script.
    pub fn to_script_args(&self, terms: &super::LeaseTerms) -> [u64; 22] {
        let [a, b, c, d] = self.holder.process.map(u64::from);
        let own = [a, b, c, d, self.holder.number, self.ledger, self.known_granted];
        let asked = [self.want, self.need, self.returned, self.return_at_us];
        let terms = [terms.lifetime_us, terms.grace_us, terms.reclaim_us()];
        let BookSummary { granted, returned, calls, state: [a, b, c] } = self.summary;
        let summary = [granted, returned, a, b, c, self.acknowledged, calls, self.last_call];
        let all = own.into_iter().chain(asked).chain(terms).chain(summary);
        let mut args = [0; 22];
        args.iter_mut().zip(all).for_each(|(to, n)| *to = n);
        args
    }
}

impl LedgerReply {
    /// Reads the script's reply; `None` if it is malformed.
    pub fn from_script_reply(numbers: [i64; 19]) -> Option<Self> {
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
                calls: at(18)?,
            },
        })
    }
}
