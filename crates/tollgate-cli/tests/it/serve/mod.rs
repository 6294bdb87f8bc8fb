//! `tollgate serve` as its users see it: standard error, signals, exit status, sockets.

mod descriptors;
mod log;
pub(crate) mod process;
mod signals;
mod start;
mod traces;
