//! Tollgate's front ends: each decodes its wire format into facts, and encodes a verdict.
//! [`tollgate_net`] provides sockets, workers, deadlines and shutdown. [`node`] is the shared
//! state. [`serve`] starts everything.

pub mod config;
pub mod front;
pub mod node;
pub mod reload;
pub mod serve;
pub mod storage;
pub mod tls;

pub use node::{Node, NodeGate, PolicyFile};
pub use storage::{Storage, StorageError};
