//! Stores decide batches of charges, atomically and all-or-nothing per request.
//!
//! ```
//! use tollgate_core::{Intent, LimitParams, Rate, algorithm::Gcra};
//! use tollgate_store::{Answers, Charge, MemoryStore, ChargeMode, Request, Store, StoreCall};
//!
//! let store = MemoryStore::default();
//! let params = LimitParams::Gcra(Gcra::try_new(Rate::try_new(2, 1_000_000)?, None)?);
//! let charge = Charge {
//!     limit: 1,
//!     key: b"alice",
//!     params: &params,
//!     params_id: store.register_params(&params),
//!     cost: 1,
//!     mode: ChargeMode::Enforce,
//!     penalty: None,
//! };
//! let charges = [charge];
//! let requests = [Request { charges: &charges, intent: Intent::Take }; 3];
//! let mut answers = Answers::default();
//! store.begin(1_700_000_000_000_000, StoreCall::Decide(&requests), &mut answers);
//! assert!(answers.get(1).is_some_and(|(admitted, _)| admitted));
//! assert!(answers.get(2).is_some_and(|(admitted, _)| !admitted));
//! # Ok::<(), tollgate_core::InvalidParams>(())
//! ```

mod answer;
mod charge;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod lease;
pub mod memory;
mod raw;
#[cfg(feature = "redis")]
pub mod redis;
mod registry;
mod reply;
mod reservation;
mod store;
mod sync;

pub use answer::{Answer, Answers, Origin};
pub use charge::{
    Adjustment, Change, Charge, ChargeMode, GracePolicy, LeaseSettings, ParamsId, RegisteredLimit,
    Request,
};
#[cfg(feature = "tokio")]
pub use clock::TokioClock;
pub use clock::{Clock, CounterClock, FixedClock, ManualClock, ProcessClock};
pub use error::{StoreError, StoreErrorKind};
pub use lease::{HolderReport, LedgerReport};
pub use memory::MemoryStore;
pub use raw::heap::release_free_memory;
pub use raw::lock;
#[cfg(feature = "redis")]
pub use redis::RedisStore;
pub use reply::{BoxedReply, StoreReply};
pub use reservation::{
    END_REPEATABLE_US, EndedReservation, NewReservation, OpenOutcome, Settlement, StateKey,
};
pub use store::{LeaseStore, ReservationStore, Store, StoreCall};
