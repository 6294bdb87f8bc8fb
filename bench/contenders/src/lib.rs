//! All contenders behind one interface. The loop is inside, so a decision costs no dynamic call.

mod floor;
mod gate;
mod governor;
mod limit;
mod limitador;
mod ours;
mod parts;
mod throttlecrab;
mod traffic;

pub use floor::{FloorBatch, FloorHot, FloorTable, FloorThree};
pub use gate::Whole;
pub use governor::Governor;
pub use limit::Limit;
pub use limitador::Limitador;
pub use ours::{Batch, Library, default_quota, gcra, paced};
pub use parts::Part;
pub use throttlecrab::Throttlecrab;
pub use tollgate::quota::Algorithm;
pub use traffic::{Arrivals, Traffic, key};

/// A limiter that is measured.
pub trait Contender: Sync {
    /// The name in tables.
    fn name(&self) -> &'static str;

    /// Decides every arrival, clock and hash included. Returns the number admitted.
    fn run(&self, arrivals: Arrivals<'_>) -> usize;
}
