//! The one interface between the engine and wherever state is kept.

use crate::{
    Adjustment, Answers, Charge, EndedReservation, LeaseSettings, LedgerReport, NewReservation,
    OpenOutcome, ParamsId, Request, Settlement, StateKey, StoreError, StoreReply,
};
use std::future::{Future, ready};
use tollgate_core::LimitParams;

/// Decides batches of requests: each atomically and all-or-nothing, in the order asked.
///
/// For one request every charge is answered by its limit alone. The request is admitted iff every
/// [`Enforce`](crate::Mode::Enforce) charge admits and none of them is in a penalty's block. An
/// admitted [`Take`](tollgate_core::Intent::Take) charges every enforced limit and every shadow
/// limit that alone admits; then the rows show the numbers after it. Otherwise nothing is charged
/// and the rows show the numbers of now. A cost of zero is admitted outside blocks and charges
/// nothing. What a `Take` [owes](crate::Mode::Owe) is charged whoever refuses, itself included, a
/// block too.
///
/// Penalties concern enforced limits only. A refusal of a `Take` by such a limit outside a block
/// counts one violation, whatever the other limits said; a block that this starts already shows in
/// that answer. In a block nothing is counted. A peek counts nothing and starts no block.
///
/// A call has two phases. [`recover`](Self::begin) answers what this process can answer by itself
/// and never waits; [`finish`](Self::finish) does the rest. Callers always begin, and finish only
/// what is left.
///
/// `now_us` is the caller's clock. A store that keeps its own time may ignore it.
/// The conformance suite (feature `conformance`) tests all of this.
pub trait Store: Send + Sync {
    /// What the first phase leaves to the second: [`Infallible`](std::convert::Infallible) for a
    /// store that answers everything at once.
    type Undecided: Copy + Send;

    /// The first phase. `None`: the call is answered, and `answers` hold what it asked for.
    fn begin(
        &self,
        now_us: u64,
        call: StoreCall<'_>,
        answers: &mut Answers,
    ) -> Option<Self::Undecided>;

    /// The second phase: does what [`recover`](Self::begin) left of the same call. On an error
    /// `answers` hold nothing of use.
    fn finish<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        rest: Self::Undecided,
        answers: &'a mut Answers,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'a;

    /// Both phases.
    fn call<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        answers: &'a mut Answers,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'a {
        async move {
            match self.begin(now_us, call, answers) {
                None => Ok(()),
                Some(rest) => self.finish(now_us, call, rest, answers).await,
            }
        }
    }

    /// The store's own name for what the charge's limit has for its key.
    fn state_key(&self, charge: &Charge<'_>) -> StateKey;

    /// Whether other processes share the state, so that answers name the store as their source.
    fn is_shared(&self) -> bool {
        true
    }

    /// A short name for numbers that will be used often. A store without use for it answers the
    /// default.
    fn register_params(&self, params: &LimitParams) -> ParamsId;
}

/// What a [`Store`] is asked.
#[derive(Clone, Copy, Debug)]
pub enum StoreCall<'a> {
    /// Answers these requests in order.
    Decide(&'a [Request<'a>]),
    /// Applies these changes together, for distinct (limit, key) pairs. The answer is one request
    /// with a row for each: what a peek says afterwards, with the receipt of what was newly owed.
    Adjust(&'a [Adjustment<'a>]),
    /// Forgets what is kept for one (limit, key), penalties included. Nothing is answered.
    Reset {
        /// Whose state it is.
        limit: u64,
        /// The key.
        key: &'a [u8],
    },
}

/// A [`Store`] that keeps reservations.
pub trait ReservationStore: Store {
    /// Keeps a reservation until its time has passed, whether or not it has ended by then.
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: NewReservation<'a>,
    ) -> StoreReply<'a, Result<OpenOutcome, StoreError>, Self::Undecided>;

    /// Ends the reservation `id` and applies with it, all at once, what `plan` makes of its note.
    /// A note that makes no sense has no plan.
    ///
    /// Only the first end counts: afterwards nothing changes any more, and the answer is that of
    /// the first. `None` when there is no such reservation, or its time has passed. After an error
    /// it may or may not have ended; the same call again settles that. `end` is at most 2^53 - 1.
    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> StoreReply<'a, Result<Option<EndedReservation>, StoreError>, Self::Undecided>;
}

/// A [`Store`] of which nodes may take chunks in advance. One that leases nothing needs no more
/// than an empty `impl`.
pub trait LeaseStore: Store {
    /// [`register_params`](Store::register_params) for a limit that nodes may take chunks of in
    /// advance; `None` where this store decides it exactly. Only charges that are enforced, have no
    /// penalty and owe nothing may use the ticket.
    fn register_leased(&self, params: &LimitParams, leasing: &LeaseSettings) -> Option<ParamsId> {
        let _ = (params, leasing);
        None
    }

    /// Who holds units of a leased limit for the charge's key; `None` where nobody does.
    fn lease_report<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> impl Future<Output = Result<Option<LedgerReport>, StoreError>> + Send + 'a {
        let _ = charge;
        ready(Ok(None))
    }
}
