//! The OpenAPI description of the check API. `tests/it/openapi` generates it from types, and holds
//! those types and the API together.

/// The description as it is served and printed: indented JSON.
pub const fn openapi() -> &'static [u8] {
    include_bytes!("openapi.json")
}
