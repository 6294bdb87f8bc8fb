//! The Lua mirrors against their Rust source, on a real redis-server.
//!
//! Needs `redis-server` on the path (Debian's package `redis-server`). `PROPTEST_CASES` sets the
//! number of traces.

mod bytes;
mod mirrors;
mod model;
mod muldiv;
mod penalty;
mod plan;
mod server;
