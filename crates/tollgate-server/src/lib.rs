//! Tollgate's front ends: each turns its wire into facts and a verdict into its wire, and nothing else.
//! [`net`] is what they all stand on: sockets, workers, deadlines and an orderly end; [`node`] is what they share.

pub mod front;
pub mod health;
pub mod metrics;
pub mod net;
pub mod node;

pub use node::{Conduct, Engine, Node};
