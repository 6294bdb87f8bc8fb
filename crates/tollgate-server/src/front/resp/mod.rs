//! Redis protocol: `CL.THROTTLE` as redis-cell has it, and the policy's limits as `TG.` commands.
//!
//! Commands that arrive together are decided together: `session` reads what a connection sent,
//! `batch` asks the store once and writes the replies in the order of the commands.

mod auth;
mod batch;
mod command;
mod decode;
mod encode;
mod session;

pub use auth::RespAuth;
pub use session::{Resp, RespState};
