//! For any Redis client: `CL.THROTTLE` as redis-cell has it, and the limits of the policy as `TG.`
//! commands.
//!
//! Commands that came together are decided together: `talk` reads what a connection sent, `turn`
//! makes one batch of it and writes the answers in the order of the commands, and the store is
//! asked once.

mod command;
mod decode;
mod encode;
mod entrance;
mod introduction;
mod limit;
mod reservation;
mod session;
mod table;
mod talk;
mod throttle;
mod turn;

pub use entrance::{RespAuth, RespPassword, RespPasswordError};
pub use talk::{Resp, RespState};
