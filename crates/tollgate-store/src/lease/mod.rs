//! The lease protocol: a process takes units of a limit in advance and spends them by itself.
//!
//! This is the protocol alone: no clock, no randomness, no I/O. [`Lease`] is the process's side,
//! for one limit and key. [`Ledger`] is the store's side, which `ledger.lua` mirrors inside Redis.
//! [`PrimaryMonitor`] detects that a primary may have lost writes. The simulator in `tests/lease`
//! runs this code.
//!
//! A process has spent A, received G and returned Q; the ledger has granted g and got back q. At
//! all times `A + Q <= G <= g`, and the ledger grants only while the sum of `g - q` stays within
//! the limit. So the limit holds, whatever happens to messages and processes, as long as the store
//! keeps the writes that it acknowledged.
//!
//! Comments refer to the rules of the protocol: I1 spend (one checked subtraction), I2 debit first
//! (the ledger charges before it grants), I3 (totals are cumulative and merged by maximum), I4
//! scope (grants expire by the process's own clock, from when it sent the request), I5 return
//! (units leave the balance first), I6 rollback (after a loss, a quiet time without grants).

mod demand;
mod holder;
mod ledger;
mod message;
mod primary_monitor;
mod report;
mod summary;
mod terms;

pub use holder::{Lease, LimitSnapshot, RenewalResult, SpentUnits};
pub use ledger::{GrantBook, HolderGrant, Ledger, Restored};
pub use message::{BookSummary, Holder, LedgerReply, LedgerRequest};
pub use primary_monitor::{MarkerReading, PrimaryMonitor, Trust};
pub use report::{HolderReport, LedgerReport};
pub use terms::{CLOCK_RATE_ERROR, LeaseTerms};

use terms::shortest_local_us;

/// Reads and writes the marker in `KEYS[1]`.
pub const MARKER_LUA: &str = include_str!("marker.lua");
/// Makes the ledger in `KEYS[1]` say that nobody holds units, and removes the state in `KEYS[2]`.
pub const CLEAR_LUA: &str = include_str!("clear.lua");
/// The ledger script, without the mirrors in front of it.
pub const LEDGER_LUA: &str = include_str!("ledger.lua");
