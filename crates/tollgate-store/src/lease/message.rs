//! What a process and the store say to each other about one limit and key.

/// Who holds a lease: a process by 128 random bits for each start, and the number of the holding,
/// so that one which was given up is never taken up again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// Drawn at random when the process starts.
    pub process: [u32; 4],
    /// Counts the holdings of the process; below 2^48.
    pub number: u64,
}

/// "In this ledger I know of so much granted and have returned so much; I want so much more."
///
/// Everything is cumulative, so that it does not matter whether it arrives late, twice, or after a
/// later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerRequest {
    /// Who asks.
    pub holder: Holder,
    /// The ledger that the figures are of; zero for a holder that knows none.
    pub ledger: u64,
    /// Units received in that ledger.
    pub known_granted: u64,
    /// Units wanted beyond those. Zero only asserts and returns.
    pub want: u64,
    /// Of them, what one request needs at once.
    pub need: u64,
    /// Units given back in that ledger.
    pub returned: u64,
    /// When the oldest of the units was granted that the store may not know to be returned, by the
    /// store's clock.
    pub return_at_us: u64,
}

/// The ledger's answer, after whatever it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerReply {
    /// The ledger that the figures are of: the number of the window, or when it was begun.
    pub ledger: u64,
    /// Units granted to the holder in it.
    pub granted: u64,
    /// Units returned by the holder in it.
    pub returned: u64,
    /// When the oldest of the units was granted that the holder did not know of.
    pub oldest_grant_us: u64,
    /// For how long they are good.
    pub usable_us: u64,
    /// For how much longer nothing is granted.
    pub quiet_us: u64,
    /// What is left for everybody.
    pub left: u64,
    /// For how long the ledger is kept at least.
    pub kept_us: u64,
    /// How long ago the book was begun: before that the store knew of nobody.
    pub age_us: u64,
    /// Whether the store had forgotten something that it has been told again.
    pub rolled_back: bool,
    /// When what was needed is there again, with time alone.
    pub retry_after_us: Option<u64>,
    /// Until the limit is as if never used.
    pub reset_after_us: u64,
}

impl LedgerRequest {
    /// As the script reads it.
    pub fn to_script_args(&self, terms: &super::LeaseTerms) -> [u64; 14] {
        let [a, b, c, d] = self.holder.process.map(u64::from);
        let Self { ledger, known_granted: known, want, need, returned, return_at_us, .. } = *self;
        let (lifetime, quiet, reclaim) = (terms.lifetime_us, terms.quiet_us, terms.reclaim_us());
        let number = self.holder.number;
        [
            a,
            b,
            c,
            d,
            number,
            ledger,
            known,
            want,
            need,
            returned,
            return_at_us,
            lifetime,
            quiet,
            reclaim,
        ]
    }
}

impl LedgerReply {
    /// What the script answered; `None` for what it never does.
    pub fn from_script_reply(params: [i64; 12]) -> Option<Self> {
        let retry = params[9];
        let at = |place: usize| u64::try_from(params[place]).ok();
        Some(Self {
            ledger: at(0)?,
            granted: at(1)?,
            returned: at(2)?,
            oldest_grant_us: at(3)?,
            usable_us: at(4)?,
            quiet_us: at(5)?,
            left: at(6)?,
            kept_us: at(7)?,
            rolled_back: at(8)? != 0,
            retry_after_us: u64::try_from(retry).ok(),
            reset_after_us: at(10)?,
            age_us: at(11)?,
        })
    }
}
