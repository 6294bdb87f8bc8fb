//! The OpenAPI description of the check API. `tests/it/openapi` generates it from types, and checks
//! these types against the API.

/// The description: indented JSON.
pub const fn openapi() -> &'static [u8] {
    include_bytes!("openapi.json")
}
