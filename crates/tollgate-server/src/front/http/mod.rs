//! The check API: JSON in, JSON and header fields out.

mod api;
pub mod decode;
pub mod encode;
mod name;
pub mod openapi;
mod plain;
mod problem;
mod reply;
pub(super) mod reservation;
mod route;

#[cfg(test)]
mod tests;

pub use api::CheckApi;
