//! The limits of most scenarios: several algorithms and keys, each failure policy.

use crate::load::LoadRequest;
use crate::oracle::Bound;

/// A limit, identified by its path.
#[derive(Clone, Copy, Debug)]
pub struct LimitedPath {
    /// The path.
    pub path: &'static str,
    /// The limit's promise.
    pub bound: Bound,
    /// The failure policy.
    pub policy: FailurePolicy,
}

/// `on_store_failure`, with the share of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Admits.
    Open,
    /// Refuses.
    Closed,
    /// Counts on the node, up to this share.
    Local(u64),
}

/// The limits of the file.
pub const MIXED: &str = "limits:
  - {name: total, match: {path: /total}, key: [user], rate: 60/366d, algorithm: fixed-window, on_store_failure: closed}
  - {name: bucket, match: {path: /bucket}, key: [user], rate: 5/s, burst: 10, algorithm: gcra, on_store_failure: closed}
  - {name: window, match: {path: /window}, key: [user], rate: 8/s, algorithm: fixed-window, on_store_failure: closed}
  - {name: log, match: {path: /log}, key: [user], rate: 6/s, algorithm: sliding-log, on_store_failure: closed}
  - {name: open, match: {path: /open}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
  - {name: local, match: {path: /local}, key: [user], rate: 30/366d, algorithm: fixed-window, on_store_failure: {local: {nodes: 3}}}
  - {name: heal, match: {path: /heal}, key: [user], rate: 4000000000/366d, algorithm: fixed-window}
";

const SECOND_US: u64 = 1_000_000;

/// The promises of the limits in [`MIXED`].
pub const MIXED_PATHS: &[LimitedPath] = &[
    LimitedPath { path: "/total", bound: Bound::Total(60), policy: FailurePolicy::Closed },
    LimitedPath {
        path: "/bucket",
        bound: Bound::Bucket { burst: 10, count: 5, period_us: SECOND_US },
        policy: FailurePolicy::Closed,
    },
    LimitedPath {
        path: "/window",
        bound: Bound::Window { limit: 8, window_us: SECOND_US },
        policy: FailurePolicy::Closed,
    },
    LimitedPath {
        path: "/log",
        bound: Bound::Sliding { limit: 6, window_us: SECOND_US },
        policy: FailurePolicy::Closed,
    },
    LimitedPath { path: "/open", bound: Bound::Total(4_000_000_000), policy: FailurePolicy::Open },
    LimitedPath { path: "/local", bound: Bound::Total(30), policy: FailurePolicy::Local(10) },
];

/// Uses all paths in turn, six users and three nodes; every fifth request costs two.
pub fn mixed(n: u64) -> LoadRequest {
    let paths = MIXED_PATHS.len() as u64;
    LoadRequest {
        node: (n / 7 % 3) as usize,
        path: MIXED_PATHS[(n % paths) as usize].path,
        user: (n / paths % 6) as u32,
        cost: if n.is_multiple_of(5) { 2 } else { 1 },
    }
}
