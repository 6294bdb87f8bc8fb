//! One rate-limit engine for every place where traffic passes.

mod gate;
mod reservation;
mod source;
mod verdict;
mod work;

pub use gate::Gate;
pub use reservation::{End, ReservationError, Settled, TTL_US_MAX};
pub use source::Source;
pub use tollgate_policy::limit;
pub use verdict::{Row, Verdict};
pub use work::Work;
