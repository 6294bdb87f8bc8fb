//! Tollgate's front ends: each turns its wire into facts and a verdict into its wire, and nothing else.

pub mod config;
pub mod front;
pub mod log;
pub mod metrics;
pub mod trace;
pub mod watch;
