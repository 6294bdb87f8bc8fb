//! Front ends, one folder per protocol: `decode` reads the wire, `encode` writes it.

mod address_throttle;
pub mod admin;
mod ambiguous_path;
mod base64;
mod browser;
mod forward_auth;
pub mod gateway;
pub mod grpc;
pub mod http;
mod problem;
pub mod resp;
mod shedding;
