//! What operators see: log, metrics, traces, audit log, keys, tail.

pub mod audit;
pub(crate) mod history;
pub(crate) mod keys;
pub mod log;
pub mod metrics;
pub(crate) mod tail;
#[cfg(test)]
mod tests;
pub(crate) mod time;
pub(crate) mod top;
pub mod trace;
