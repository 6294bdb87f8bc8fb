//! One folder per protocol, each with the same files: `decode` reads the wire, `encode` writes it.

pub mod admin;
mod date;
mod forward_auth;
pub mod gateway;
pub mod grpc;
pub mod http;
mod media;
pub mod resp;
