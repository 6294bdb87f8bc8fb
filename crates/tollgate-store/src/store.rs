//! The interface between the engine and the stores.

use crate::{
    Adjustment, Answer, Answers, Charge, Clock, EndedReservation, LeaseSettings, LedgerReport,
    NewReservation, OpenOutcome, ParamsId, RegisteredLimit, Request, Settlement, StateKey,
    StoreError, StoreReply,
};
use std::future::{Future, ready};
use tollgate_core::{Intent, LimitParams, LimitState};

/// Decides batches of requests in order, each atomically and all-or-nothing.
///
/// Each limit answers its charge alone. The request is admitted iff every
/// [`Enforce`](crate::ChargeMode::Enforce) charge admits and none is blocked. An admitted
/// [`Take`](tollgate_core::Intent::Take) charges every enforced limit, and every shadow limit that
/// alone admits; the rows show the state afterwards. Otherwise nothing is charged, and the rows
/// show the current state. A cost of zero is admitted outside blocks and charges nothing. A
/// [debt](crate::ChargeMode::Owe) is charged even if a limit refuses or blocks.
/// [Candidates](crate::ChargeMode::Candidate) are charged by a verdict of their own.
///
/// A store of several servers may fail to decide some charges of a call. Their rows are
/// [failed](crate::Answer::failed), and the store decides the rest without them. If it decides no
/// charge, the call fails.
///
/// Only enforced limits have penalties. A `Take` that such a limit refuses outside a block counts
/// one violation, whatever other limits say; a block that this starts shows in the same answer. In
/// a block nothing is counted. A peek counts nothing and starts no block.
///
/// A call has two phases. [`begin`](Self::begin) answers everything that this process can answer by
/// itself, and never waits. [`finish`](Self::finish) does the rest.
///
/// `now_us` is the caller's clock. A store that keeps its own time may ignore it.
/// The conformance suite (feature `conformance`) tests all of this.
pub trait Store: Send + Sync {
    /// The rest that the first phase leaves to the second. [`Infallible`](std::convert::Infallible)
    /// for a store that answers everything in the first phase.
    type Undecided: Copy + Send;

    /// Decides a request with one charge and calls `conclude`, if the store needs neither a buffer
    /// nor a lock. Otherwise calls `otherwise`, and nothing has changed. The request is admitted
    /// iff the answer is, or the charge is not enforced. A store reads `clock` at most once, while
    /// a cell's memory is on its way, so `clock` must not block or call a store.
    #[inline(always)]
    fn decide_one<T, F: FnOnce(Answer) -> T>(
        &self,
        clock: impl Clock,
        charge: &Charge<'_>,
        intent: Intent,
        conclude: F,
        otherwise: impl FnOnce(F) -> T,
    ) -> T {
        let _ = (clock, charge, intent);
        otherwise(conclude)
    }

    /// Charges `cost` to all `limits` of one key or to none, if the store has state for each of
    /// them and needs no buffer. Returns the answer of the first of the
    /// [tightest](tollgate_core::header::tightness) limits, without receipt and `more_after_us`.
    /// The request is admitted iff this answer is. `None`: nothing has changed. `clock` is as in
    /// [`decide_one`](Self::decide_one).
    #[inline(always)]
    fn decide_together<T>(
        &self,
        clock: impl Clock,
        key: &[u8],
        cost: u64,
        limits: &[RegisteredLimit],
        conclude: impl FnOnce(Answer) -> T,
    ) -> Option<T> {
        let _ = (clock, key, cost, limits, conclude);
        None
    }

    /// The first phase. `None`: the call is complete, and `answers` has its rows.
    fn begin(
        &self,
        now_us: u64,
        call: StoreCall<'_>,
        answers: &mut Answers,
    ) -> Option<Self::Undecided>;

    /// The second phase: finishes the call that [`begin`](Self::begin) left undecided. On an error
    /// `answers` is meaningless. If the future is dropped before it ends, the store gives back the
    /// slots that the call took, if it can; other charges may stay.
    fn finish<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        rest: Self::Undecided,
        answers: &'a mut Answers,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'a;

    /// Runs both phases.
    fn call<'a>(
        &'a self,
        now_us: u64,
        call: StoreCall<'a>,
        answers: &'a mut Answers,
    ) -> StoreReply<'a, Result<(), StoreError>, Self::Undecided> {
        match self.begin(now_us, call, answers) {
            None => StoreReply::Now(Ok(())),
            Some(rest) => StoreReply::later(rest, self.finish(now_us, call, rest, answers)),
        }
    }

    /// The store's own name for the state of the charge's limit and key.
    fn state_key(&self, charge: &Charge<'_>) -> StateKey;

    /// Whether every call ends with its first phase, so that no caller waits for an answer.
    fn answers_at_once(&self) -> bool {
        false
    }

    /// Whether other processes share the state. Answers then name the store as their source.
    fn is_shared(&self) -> bool {
        true
    }

    /// Registers params that are used often, and returns their id. A store without ids returns the
    /// default.
    fn register_params(&self, params: &LimitParams) -> ParamsId;

    /// Like [`register_params`](Self::register_params), for a limit that requests charge together
    /// with others on the same key.
    fn register_grouped(&self, params: &LimitParams) -> ParamsId {
        self.register_params(params)
    }
}

/// A call to a [`Store`].
#[derive(Clone, Copy, Debug)]
pub enum StoreCall<'a> {
    /// Decides these requests in order.
    Decide(&'a [Request<'a>]),
    /// Applies these changes together, for distinct (limit, key) pairs. The answer is one request
    /// with a row for each: a peek afterwards, with the receipt of a new debt.
    Adjust(&'a [Adjustment<'a>]),
    /// Removes the state of one (limit, key), penalties too. For an hour, charges made until then
    /// cannot be given back, but slots can. A store with a clock of its own uses that instant. Has
    /// no answer.
    Reset {
        /// The limit's id.
        limit: u64,
        /// The key.
        key: &'a [u8],
    },
}

/// A [`Store`] that keeps reservations.
pub trait ReservationStore: Store {
    /// Opens a reservation. It stays until its TTL passes, even after its end.
    fn open_reservation<'a>(
        &'a self,
        now_us: u64,
        opening: NewReservation<'a>,
    ) -> StoreReply<'a, Result<OpenOutcome, StoreError>, Self::Undecided>;

    /// Ends the reservation `id`, and applies the changes that `plan` derives from its note, all at
    /// once. `plan` returns `None` for an invalid note.
    ///
    /// Only the first end counts; later ends change nothing and get the first answer. `None` if the
    /// reservation does not exist or has expired. After an error it may or may not have ended;
    /// repeat the call. `end` is at most 2^53 - 1.
    fn end_reservation<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: impl Fn(&[u8]) -> Option<Vec<Settlement>> + Send + Sync + 'a,
    ) -> StoreReply<'a, Result<Option<EndedReservation>, StoreError>, Self::Undecided>;
}

/// A [`Store`] that can lease limits to nodes. Other stores have an empty `impl`.
pub trait LeaseStore: Store {
    /// Like [`register_params`](Store::register_params), for a leased limit; `None` if the store
    /// must decide it. Only enforced charges without penalty and debt may use the id.
    fn register_leased(&self, params: &LimitParams, leasing: &LeaseSettings) -> Option<ParamsId> {
        let _ = (params, leasing);
        None
    }

    /// The state of the charge's key, for operators; `None` if the store cannot read it.
    fn read_state<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> impl Future<Output = Result<Option<LimitState>, StoreError>> + Send + 'a {
        let _ = charge;
        ready(Ok(None))
    }

    /// The holders of units of a leased limit for the charge's key; `None` if there are none.
    fn lease_report<'a>(
        &'a self,
        charge: &'a Charge<'a>,
    ) -> impl Future<Output = Result<Option<LedgerReport>, StoreError>> + Send + 'a {
        let _ = charge;
        ready(Ok(None))
    }
}
