//! History: decisions of limits and shedders in the last 15 minutes, for charts.

use crate::metrics::ClassMetrics;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::Mutex;
use tollgate::engine::{Counts, Gate, ShedCounts};
use tollgate_net::lock;
use tollgate_store::LeaseStore;

/// The time between two points.
const EVERY_US: u64 = 5_000_000;
/// Points kept: 15 minutes.
const POINTS_MAX: usize = 180;
/// Limits per point, in file order.
const LIMITS_MAX: usize = 64;
/// Classes per point.
const CLASSES_MAX: usize = 32;

/// Points of a node's counters, at regular intervals.
#[derive(Debug, Default)]
pub struct History(Mutex<VecDeque<HistoryPoint>>);

#[derive(Debug)]
struct HistoryPoint {
    time_us: u64,
    limits: Vec<(Box<str>, [u64; 5])>,
    /// A policy has at most 16 classes. Classes of earlier files keep their counters.
    classes: Vec<(Box<str>, [u64; 8])>,
    /// The limit of the adaptive shedder.
    adaptive_limit: Option<u32>,
}

impl History {
    /// Adds a point if the last one is old enough. Call it from a timer.
    pub fn tick<S: LeaseStore>(&self, gate: &Gate<S>, now_us: u64) {
        let mut points = lock(&self.0);
        if points.back().is_some_and(|last| now_us.saturating_sub(last.time_us) < EVERY_US) {
            return;
        }
        if points.len() >= POINTS_MAX {
            points.pop_front();
        }
        let limits = gate.counts().into_iter().take(LIMITS_MAX);
        let limits = limits.map(|(name, counts)| (name, figures(&counts))).collect();
        let (classes, adaptive_limit) = ClassMetrics::of(gate);
        let classes = classes.iter().take(CLASSES_MAX);
        let classes = classes.map(|class| (class.name.clone(), class_figures(class))).collect();
        points.push_back(HistoryPoint { time_us: now_us, limits, classes, adaptive_limit });
    }

    /// Returns the points, oldest first: the time in seconds, and the counts of each limit and
    /// class since the start.
    pub fn view(&self) -> Value {
        let points = lock(&self.0);
        let view = |point: &HistoryPoint| {
            json!({
                "time": point.time_us / 1_000_000,
                "limits": by_name(&point.limits),
                "classes": by_name(&point.classes),
                "limit": point.adaptive_limit,
            })
        };
        json!({
            "figures": ["admitted", "refused", "shadow_refused", "fail_open", "fail_closed"],
            "class_figures": [
                "admitted", "shed_fleet", "shed_adaptive", "shed_queue", "shadow_shed",
                "in_flight", "at_upstream", "left",
            ],
            "points": points.iter().map(view).collect::<Vec<_>>(),
        })
    }
}

fn by_name<const N: usize>(figures: &[(Box<str>, [u64; N])]) -> Map<String, Value> {
    figures.iter().map(|(name, counts)| (name.to_string(), json!(counts.as_slice()))).collect()
}

/// The numbers of a class that charts show. `in_flight` and `at_upstream` are gauges.
fn class_figures(ClassMetrics { counts, at_upstream, .. }: &ClassMetrics) -> [u64; 8] {
    let ShedCounts { admitted, shed: [fleet, adaptive, queue], in_flight, left, .. } = *counts;
    let shadow_shed = counts.shadow_shed.iter().sum();
    [admitted, fleet, adaptive, queue, shadow_shed, in_flight, *at_upstream, left]
}

/// The numbers of a limit that charts show. A decision by failure policy counts as open or closed.
fn figures(counts: &Counts) -> [u64; 5] {
    [
        counts.admitted,
        counts.refused,
        counts.shadow_refused,
        counts.fail_open + counts.local_admitted,
        counts.fail_closed + counts.local_refused,
    ]
}
