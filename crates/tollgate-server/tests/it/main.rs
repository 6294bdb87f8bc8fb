//! The server's integration tests, one binary.

mod admin;
mod exposition;
mod forward_auth;
mod gateway;
mod http;
mod metrics;
mod net;
mod nodes;
mod openapi;
mod recipes;
mod resp;
mod serve;
