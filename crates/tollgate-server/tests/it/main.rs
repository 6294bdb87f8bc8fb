//! The server's integration tests, one binary.

mod admin;
mod exposition;
mod metrics;
