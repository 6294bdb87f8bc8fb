//! Connections over pipes in virtual time: a minute of silence takes no time to test.

#[cfg(test)]
mod cases;
pub mod rig;
