//! Leases: a process takes a chunk of a limit from the store in advance and spends it by itself,
//! and the limit holds.
//!
//! This is the protocol alone: no clock, no randomness, no I/O. [`Lease`] is the process's side,
//! for one limit and key; [`Ledger`] is the store's, which `ledger.lua` mirrors inside Redis;
//! [`PrimaryMonitor`] notices that a store is not the one it was. The simulator in `tests/lease`
//! runs this code and nothing else.
//!
//! With A spent, G received and Q returned by a process, and g and q what the store has for it,
//! `A + Q <= G <= g` at all times, and the store grants only what the limit has left. So what all have
//! spent is never more than the limit, whatever becomes of messages and processes, for as long as
//! the store keeps what it acknowledged.

mod demand;
mod holder;
mod ledger;
mod message;
mod primary_monitor;
mod report;
mod terms;

pub use holder::{Lease, LimitSnapshot, RenewalResult, SpentUnits};
pub use ledger::{GrantBook, HolderGrant, Ledger};
pub use message::{Holder, LedgerReply, LedgerRequest};
pub use primary_monitor::{MarkerReading, PrimaryMonitor};
pub use report::{HolderReport, LedgerReport};
pub use terms::{CLOCK_RATE_ERROR, LeaseTerms};

use terms::shortest_local_us;

/// What answers whether a store is the one it was, as `KEYS[1]` remembers it.
pub const MARKER_LUA: &str = include_str!("marker.lua");
/// What makes the book in `KEYS[1]` that of a limit that nobody used.
pub const CLEAR_LUA: &str = include_str!("clear.lua");
/// The ledger's script, without the mirrors in front of it.
pub const LEDGER_LUA: &str = include_str!("ledger.lua");
