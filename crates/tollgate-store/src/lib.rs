//! Stores decide batches of charges: atomically, all-or-nothing per request.

mod answer;
mod charge;

pub use answer::{Answer, Answers};
pub use charge::{Charge, Mode, Request, Ticket};
