//! Load shedding: finds how many requests an upstream can take, and keeps the important ones.
//!
//! An [`AdaptiveShedder`] stands before one upstream. It measures throughput at two levels of
//! requests in flight and so finds the level at which more only brings delay. Above that level
//! the least important class is shed first, and inside a class the client who sends most.

mod abandoned;
mod demand;
mod fair;
mod limit;
mod queue;
mod shedder;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod threshold;
mod types;

pub use shedder::{AdaptiveShedder, Entry, QueuedEntry, ShedTicket};
pub use snapshot::{ClassCounts, ShedSnapshot};
pub use types::{
    AdaptiveSettings, CLASSES_MAX, ShedReason, ShedRefusal, ShedRequest, UpstreamOutcome,
    UpstreamReport,
};
