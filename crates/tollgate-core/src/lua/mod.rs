//! Lua mirrors of the algorithms, for stores that decide inside Redis.
//!
//! A mirror is a Lua table named like its file, with the functions of
//! [`Algorithm`](crate::Algorithm) on plain tables:
//!
//! | function | returns |
//! | --- | --- |
//! | `params(count, period_us, burst, queue)` | params of most algorithms |
//! | `params(slots, ttl_us)` | params of concurrency |
//! | `params(count, first_s, length_s, length_s, length_s)` | params of three calendar windows |
//! | `decode(value)` | the state in `value`, or that of a new key for `nil` |
//! | `redate(params, state, now_us)` | whether the state was dated ahead and has been corrected |
//! | `admits(params, state, now_us, cost)` | whether the limit alone admits, and nothing else |
//! | `decide(params, state, now_us, cost, take)` | the fields of [`Outcome`]; `None` is `nil` |
//! | `charge(params, state, now_us, cost)` | the receipt's `at_us`, `mark_us` and `mark_fraction` |
//! | `give_back(params, state, now_us, units, receipt)` | nothing |
//! | `idle_at_us(params, state)` | the instant from which the key may be dropped |
//! | `encode(state)` | the value to store |
//!
//! Lua's numbers are doubles, exact up to [`MAX_US`](crate::MAX_US). Callers clamp instants, costs
//! and units to it, which changes no decision; results saturate there. Bursts and queues have their
//! defaults filled in. Mirrors read no clock, no key and no script argument.
//!
//! [`Outcome`]: crate::Outcome

mod params;

use alloc::string::String;

pub use params::{
    charge_kind, decode_params, decode_penalty, decode_state, encode_params, to_lua_params,
};

/// Exact products and quotients, used by every mirror.
pub const MULDIV: &str = include_str!("../algorithm/muldiv.lua");
/// Windows aligned to the epoch, shared by fixed and sliding window.
pub const WINDOW: &str = include_str!("../algorithm/window.lua");
/// The functions shared by gcra, token bucket and leaky bucket.
pub const BUCKET: &str = include_str!("../algorithm/bucket.lua");
/// The functions shared by sliding log and concurrency.
pub const EXPIRY_LOG: &str = include_str!("../algorithm/expiry_log.lua");
/// The mirror of [`penalty`](crate::penalty): `params`, `decode`, `blocked_until_us`, `count`,
/// `idle_at_us`, `encode`.
pub const PENALTY: &str = include_str!("../penalty/penalty.lua");

/// The epoch of an expiry log's `mark_us`, in microseconds since the Unix epoch.
pub const EXPIRY_LOG_EPOCH_US: u64 = 100_000_000_000_000;

/// Each algorithm by its name in `tollgate.yaml`, with the parts of its mirror in order.
pub const MIRRORS: [(&str, &[&str]); 8] = [
    ("fixed-window", &[MULDIV, WINDOW, include_str!("../algorithm/fixed_window/fixed_window.lua")]),
    (
        "sliding-window",
        &[MULDIV, WINDOW, include_str!("../algorithm/sliding_window/sliding_window.lua")],
    ),
    (
        "sliding-log",
        &[MULDIV, WINDOW, EXPIRY_LOG, include_str!("../algorithm/sliding_log/sliding_log.lua")],
    ),
    ("token-bucket", &[MULDIV, BUCKET, include_str!("../algorithm/token_bucket/token_bucket.lua")]),
    ("leaky-bucket", &[MULDIV, BUCKET, include_str!("../algorithm/leaky_bucket/leaky_bucket.lua")]),
    ("gcra", &[MULDIV, BUCKET, include_str!("../algorithm/gcra/gcra.lua")]),
    (
        "concurrency",
        &[MULDIV, EXPIRY_LOG, include_str!("../algorithm/concurrency/concurrency.lua")],
    ),
    // In `tollgate.yaml`, this is `fixed-window` with a calendar unit.
    (
        "calendar-window",
        &[MULDIV, include_str!("../algorithm/calendar_window/calendar_window.lua")],
    ),
];

/// The parts of an algorithm's mirror; `None` for an unknown algorithm.
pub fn parts(algorithm: &str) -> Option<&'static [&'static str]> {
    MIRRORS.iter().find(|mirror| mirror.0 == algorithm).map(|mirror| mirror.1)
}

/// Joins parts into one script. A repeated part occurs once, at its first position.
pub fn compose<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut script = String::new();
    for part in parts {
        if !script.contains(part) {
            script.push_str(part);
            script.push('\n');
        }
    }
    script
}

#[cfg(test)]
mod tests;
