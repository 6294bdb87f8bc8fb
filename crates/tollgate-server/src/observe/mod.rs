//! What operators see: log, metrics, traces, audit log, keys, tail, records.

pub(crate) mod append;
pub mod audit;
pub mod escape;
pub(crate) mod history;
pub(crate) mod keys;
pub mod log;
pub mod metrics;
pub mod otlp;
pub mod record;
pub(crate) mod tail;
#[cfg(test)]
mod tests;
pub mod time;
pub(crate) mod top;
pub mod trace;
pub mod usage;
