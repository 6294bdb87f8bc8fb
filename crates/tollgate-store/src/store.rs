//! The one interface between the engine and wherever state is kept.

use crate::{Adjustment, Answers, Request, StoreError, Ticket};
use std::future::Future;
use tollgate_core::Numbers;

/// Decides batches of requests: each atomically and all-or-nothing, in the order asked.
///
/// For one request every charge is answered by its limit alone. The request is admitted iff every
/// [`Enforce`](crate::Mode::Enforce) charge admits and none of them is in a penalty's block. An admitted
/// [`Take`](tollgate_core::Intent::Take) charges every enforced limit and every shadow limit that alone admits; then the
/// rows show the numbers after it. Otherwise nothing is charged and the rows show the numbers of now.
/// A cost of zero is admitted outside blocks and charges nothing.
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

    /// Whether other processes share the state, and so whether a decision has to leave this one.
    fn is_shared(&self) -> bool {
        true
    }

    /// A short name for numbers that will be used often. A store without use for it answers the default.
    fn enroll(&self, numbers: &Numbers) -> Ticket;
}
