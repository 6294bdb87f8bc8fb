//! Tollgate's front ends: each turns its wire into facts and a verdict into its wire, and nothing
//! else. [`tollgate_net`] is what they all stand on: sockets, workers, deadlines and an orderly
//! end; [`node`] is what they share; [`serve`] starts all of it.

pub mod config;
pub mod front;
pub mod node;
pub mod reload;
pub mod serve;
pub mod storage;
pub mod tls;

pub use node::{Node, NodeGate, PolicyFile};
pub use storage::{Storage, StorageError};
