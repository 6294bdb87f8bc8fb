//! Tollgate's front ends: each turns its wire into facts and a verdict into its wire, and nothing else.
//! [`net`] is what they all stand on: sockets, workers, deadlines and an orderly end.

pub mod front;
pub mod metrics;
pub mod net;
