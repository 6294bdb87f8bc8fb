//! Leases on Redis: the ledger's script, and the calls that carry it.

mod script;

pub use script::{lease_reply, lease_script};
