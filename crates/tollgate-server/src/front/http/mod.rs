//! The check API: JSON in, JSON and headers out.

mod api;
pub mod decode;
pub mod encode;
pub mod openapi;
mod problem;
mod route;

pub use api::CheckApi;
