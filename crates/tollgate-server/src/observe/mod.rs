//! What operators see: log, metrics, traces, audit log.

pub mod audit;
pub mod log;
pub mod metrics;
pub(crate) mod time;
pub mod trace;
