//! Redis protocol: redis-cell's `CL.THROTTLE`, and commands for the limits of the policy.
//!
//! Commands that arrive together are decided together. `session` reads the input of a connection;
//! `batch` calls the store once and writes the replies in order.

mod auth;
mod batch;
mod command;
mod decode;
mod encode;
mod session;

pub use auth::RespAuth;
pub use session::{Resp, RespState};
