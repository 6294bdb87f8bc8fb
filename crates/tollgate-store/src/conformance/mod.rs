//! The conformance suite that every store passes, also for third parties: call [`run`].
//!
//! The suite passes instants in the year 2023, so a store that uses only its own clock cannot pass.
//! Every rule uses fresh keys and numbered limits, so a shared backend must be empty at the start.
//!
//! ```
//! # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
//! # fn block_on<T>(future: impl Future<Output = T>) -> T {
//! #     match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
//! #         Poll::Ready(value) => value,
//! #         Poll::Pending => unreachable!(),
//! #     }
//! # }
//! use tollgate_store::{MemoryStore, conformance};
//!
//! block_on(conformance::run(async || MemoryStore::default()));
//! ```

mod adjustments;
mod admission;
mod driver;
mod model;
mod penalties;
mod reservations;
mod trace;

pub use adjustments::{debts, give_backs, give_backs_after_resets, resets};
pub use admission::{all_or_nothing, batches, costs, leaps, owed, peeks, shadows, tier_changes};
pub use driver::{ChargeSpec, StoreDriver};
pub use model::Model;
pub use penalties::{block_ends, blocks, kept_penalties, operators_blocks, uncounted};
pub use reservations::{ended_once, expiring, settled};
pub use trace::{algorithms, calendar_traces, calendars, traces};

use crate::ReservationStore;

/// Runs every rule, each on a store that `fresh` makes. Panics if a rule is broken.
pub async fn run<S: ReservationStore>(fresh: impl AsyncFn() -> S) {
    all_or_nothing(&fresh().await).await;
    batches(&fresh().await).await;
    costs(&fresh().await).await;
    peeks(&fresh().await).await;
    leaps(&fresh().await).await;
    shadows(&fresh().await).await;
    owed(&fresh().await).await;
    tier_changes(&fresh().await).await;
    blocks(&fresh().await).await;
    block_ends(&fresh().await).await;
    uncounted(&fresh().await).await;
    operators_blocks(&fresh().await).await;
    kept_penalties(&fresh().await).await;
    give_backs(&fresh().await).await;
    debts(&fresh().await).await;
    resets(&fresh().await).await;
    give_backs_after_resets(&fresh().await).await;
    settled(&fresh().await).await;
    ended_once(&fresh().await).await;
    expiring(&fresh().await).await;
    for seed in 1..=8 {
        traces(&fresh().await, seed, 2_000).await;
        calendar_traces(&fresh().await, seed, 2_000).await;
    }
}
