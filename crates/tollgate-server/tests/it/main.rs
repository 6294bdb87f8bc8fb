//! The server's integration tests, one binary.

mod exposition;
mod metrics;
mod openapi;
