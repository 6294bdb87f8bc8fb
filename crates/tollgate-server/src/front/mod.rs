//! One folder per protocol, each with the same files: `decode` reads the wire, `encode` writes it.

pub mod admin;
mod ambiguous_path;
pub(crate) mod date;
mod forward_auth;
pub mod gateway;
pub mod grpc;
mod guard;
pub mod http;
mod media;
mod page;
pub mod resp;
