//! The admin API: health and metrics for everybody, and what operators do, behind a token.

mod access;
mod guard;

pub use access::{Token, TokenError};
