//! The one interface between the engine and wherever state is kept.

use crate::{
    Adjustment, Answers, Charge, Ended, Leasing, LedgerReport, Opened, Opening, Place, Plan,
    Request, StoreError, Ticket,
};
use std::future::{Future, ready};
use tollgate_core::Numbers;

/// Decides batches of requests: each atomically and all-or-nothing, in the order asked.
///
/// For one request every charge is answered by its limit alone. The request is admitted iff every
/// [`Enforce`](crate::Mode::Enforce) charge admits and none of them is in a penalty's block. An admitted
/// [`Take`](tollgate_core::Intent::Take) charges every enforced limit and every shadow limit that alone admits; then the
/// rows show the numbers after it. Otherwise nothing is charged and the rows show the numbers of now.
/// A cost of zero is admitted outside blocks and charges nothing.
/// What a `Take` [owes](crate::Mode::Owe) is charged whoever refuses, itself included, a block too.
///
/// Penalties concern enforced limits only. A refusal of a `Take` by such a limit outside a block counts one
/// violation, whatever the other limits said; a block that this starts already shows in that answer. In a block nothing
/// is counted. A peek counts nothing and starts no block.
///
/// `now_us` is the caller's clock. A store that keeps its own time may ignore it.
/// The conformance suite (feature `conformance`) tests all of this.
pub trait Store: Send + Sync {
    /// Answers `requests` in order. On an error `answers` holds nothing of use.
    fn decide<'a>(
        &'a self,
        now_us: u64,
        requests: &'a [Request<'a>],
        answers: &'a mut Answers,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'a;

    /// Applies `adjustments` together, for distinct (limit, key) pairs. The answer is one request with a row for each: what a peek says
    /// afterwards, with the receipt of what was newly owed.
    fn adjust<'a>(
        &'a self,
        now_us: u64,
        adjustments: &'a [Adjustment<'a>],
        answers: &'a mut Answers,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'a;

    /// Forgets what is kept for one (limit, key), penalties included.
    fn reset<'a>(
        &'a self,
        limit: u64,
        key: &'a [u8],
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'a;

    /// Keeps a reservation until its time has passed, whether or not it has ended by then.
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: &'a Opening<'a>,
    ) -> impl Future<Output = Result<Opened, StoreError>> + Send + 'a;

    /// Ends the reservation `id` and applies with it, all at once, what `plan` makes of its note. The answer is one request with a row for each of
    /// its places, as [`adjust`](Self::adjust) answers.
    ///
    /// Only the first end counts: afterwards nothing changes any more, and the answer is that of the first. `None` when there is no such
    /// reservation, or its time has passed. After an error it may or may not have ended; the same call again settles that. `end` is at most 2^53 - 1.
    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: &'a Plan<'a>,
        answers: &'a mut Answers,
    ) -> impl Future<Output = Result<Option<Ended>, StoreError>> + Send + 'a;

    /// The store's own name for what the charge's limit has for its key.
    fn place(&self, charge: &Charge<'_>) -> Place;

    /// Whether other processes share the state, and so whether a decision has to leave this one.
    fn is_shared(&self) -> bool {
        true
    }

    /// Who holds units of a leased limit for the charge's key; `None` where nobody does.
    fn ledger<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> impl Future<Output = Result<Option<LedgerReport>, StoreError>> + Send + 'a {
        let _ = charge;
        ready(Ok(None))
    }

    /// A short name for numbers that will be used often. A store without use for it answers the default.
    fn enroll(&self, numbers: &Numbers) -> Ticket;

    /// The same for a limit that nodes may take chunks of in advance; `None` where this store decides it exactly, as a store does that knows no
    /// better. Only charges that are enforced, have no penalty and owe nothing may use the ticket.
    fn enroll_leased(&self, numbers: &Numbers, leasing: &Leasing) -> Option<Ticket> {
        let _ = (numbers, leasing);
        None
    }
}
