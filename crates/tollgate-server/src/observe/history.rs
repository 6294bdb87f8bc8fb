//! History: what each limit decided in the last quarter of an hour, for charts.

use crate::node::{Node, lock};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Mutex;
use tollgate::engine::Counts;

/// The time from one point to the next.
const EVERY_US: u64 = 5_000_000;
/// Points that are kept: 15 minutes.
const POINTS_MAX: usize = 180;
/// Limits of a point, in file order.
const LIMITS_MAX: usize = 64;

/// The counters of a node, at regular times.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<HistoryPoint>>);

#[derive(Debug)]
struct HistoryPoint {
    time_us: u64,
    limits: Vec<(Box<str>, [u64; 5])>,
}

impl Node {
    /// Adds a point to the history when it is time. Call it from a timer.
    pub(crate) fn tick_history(&self, now_us: u64) {
        let mut points = lock(&self.history.0);
        if points.back().is_some_and(|last| now_us.saturating_sub(last.time_us) < EVERY_US) {
            return;
        }
        if points.len() >= POINTS_MAX {
            points.pop_front();
        }
        let limits = self.gate.counts().into_iter().take(LIMITS_MAX);
        let limits = limits.map(|(name, counts)| (name, figures(&counts))).collect();
        points.push_back(HistoryPoint { time_us: now_us, limits });
    }
}

impl History {
    /// The points, oldest first: time in seconds, and for each limit the units since the start.
    pub(crate) fn view(&self) -> Value {
        let points = lock(&self.0);
        let view = |point: &HistoryPoint| {
            let limits: serde_json::Map<String, Value> = point
                .limits
                .iter()
                .map(|(name, counts)| (name.to_string(), json!(counts)))
                .collect();
            json!({"time": point.time_us / 1_000_000, "limits": limits})
        };
        let names = ["admitted", "refused", "shadow_refused", "fail_open", "fail_closed"];
        json!({"figures": names, "points": points.iter().map(view).collect::<Vec<_>>()})
    }
}

/// What charts show: decisions by a failure policy are open or closed.
fn figures(counts: &Counts) -> [u64; 5] {
    [
        counts.admitted,
        counts.refused,
        counts.shadow_refused,
        counts.fail_open + counts.local_admitted,
        counts.fail_closed + counts.local_refused,
    ]
}
