//! The service for comparing layers, served over sockets or called in the process.

mod calls;
mod pass;
mod service;

pub use calls::Calls;
pub use service::{LAYERS, LayerRow, router, serve};
