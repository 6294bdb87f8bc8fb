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
//! (units leave the balance first), I6 rollback (after a loss, a grace period without grants), I7
//! summary.
//!
//! I7: each reply carries a summary of the book: the limit's state, and the units granted and
//! returned by all holders, which only grow in one ledger. A holder sends its last summary along. A
//! book with fewer granted units, without the holder's last call, or no book, has lost writes. It
//! takes over the holder's summary, and continues under the holder's ledger. The last reply to a
//! living holder covers all earlier ones. So the store loses only later grants to other holders,
//! and its own later decisions. A later summary replaces an earlier one while the book has no other
//! charges; otherwise the larger state counts. Which returns a summary contains is unknown. So
//! after a loss, the first request of each holder credits no return. Returns without
//! acknowledgement are stranded.
//!
//! In a grace period the store grants nothing. Requests that a lease cannot decide are decided by
//! the store on the restored state, or refused, by the limit's failure policy. The excess admitted
//! is at most the units lost and not re-asserted by then; on a first start that is zero. A limit
//! that fails closed then admits only from leases. It accepts a direct decision only if the reply
//! shows the marker that the process knows: a store that was just emptied has none.
//!
//! Units granted are at all times the sum of those spent, returned, stranded and held.

mod demand;
mod holder;
mod ledger;
mod message;
mod primary_monitor;
mod report;
mod summary;
mod takeover;
mod terms;

pub use holder::{Lease, LimitSnapshot, RenewalResult, SpentUnits};
pub use ledger::{GrantBook, HolderGrant, Ledger, Restored};
pub use message::{BookSummary, Holder, LedgerReply, LedgerRequest};
pub use primary_monitor::{MarkerReading, PrimaryMonitor, SeenMarker, Trust};
pub use report::{HolderReport, LedgerReport};
pub use takeover::{MarkerOwner, ReplicationStatus, TakeoverWait};
pub use terms::{CLOCK_RATE_ERROR, LeaseTerms};

use terms::shortest_local_us;

/// Reads and writes the marker in `KEYS[1]`.
pub const MARKER_LUA: &str = include_str!("marker.lua");
/// Empties the ledger in `KEYS[1]`. The script that resets states follows, for `KEYS[2]`.
pub const CLEAR_LUA: &str = include_str!("clear.lua");
/// The ledger script, without the mirrors in front of it.
pub const LEDGER_LUA: &str = include_str!("ledger.lua");
