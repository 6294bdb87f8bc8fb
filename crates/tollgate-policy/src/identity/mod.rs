//! Identity of a client: its address behind proxies, its tier, and the hash of its API key.

pub mod address;
pub(crate) mod hash;
mod http_policy;
mod tier_map;

pub use hash::{HASH_PREFIX, hash};
pub use http_policy::HttpPolicy;
pub use tier_map::{TierMap, TierRules};
