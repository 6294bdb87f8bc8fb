//! Everything operators see of a node: log, metrics, traces, audit log, top keys, tail, records.
//!
//! The engine shows each decision to [`DecisionWatchers`]. Front ends count requests in
//! [`metrics::Metrics`] and write to [`record::Records`]. No code here waits for a disk, a
//! collector or a reader while a request is decided. Data that does not fit a queue is dropped and
//! counted.

mod append;
pub mod audit;
pub mod escape;
pub mod history;
pub mod keys;
pub mod log;
pub mod metrics;
pub mod otlp;
pub mod record;
mod source;
pub mod tail;
#[cfg(test)]
mod tests;
pub mod time;
pub mod top;
pub mod trace;
pub mod usage;
mod watchers;

pub use source::ObservedNode;
pub use watchers::DecisionWatchers;
