//! The check API: JSON in, JSON and header fields out.

pub mod decode;
pub mod encode;
pub mod openapi;
