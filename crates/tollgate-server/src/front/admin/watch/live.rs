//! `GET /v1/live`: the counters of a node, once a second.

use super::{EventSource, push_event};
use crate::front::admin::Admin;
use crate::front::gateway::UpstreamStatus;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate::engine::{Counts, ShedReason};
use tollgate::store::Store;
use tollgate::store::redis::LeaseStats;
use tollgate_net::lock;
use tollgate_observe::ObservedNode;
use tollgate_observe::metrics::{ClassMetrics, LimitCounters, MetricsSnapshot};
use tollgate_observe::time::rfc3339;
use tollgate_policy::limit::Mode;
use tollgate_policy::policy::Policy;
use tollgate_store::StoreErrorKind;

/// The age limit of the shared counters: they are read once for all readers.
const FRESH_US: u64 = 900_000;

/// The last counters, as an event.
#[derive(Debug, Default)]
pub(in crate::front::admin) struct LiveFigures(Mutex<(u64, Bytes)>);

/// The event source of one reader.
pub(super) struct LiveSource {
    admin: Arc<Admin>,
    is_new: bool,
}

#[derive(Serialize)]
struct LiveView {
    time: String,
    generation: u64,
    ready: bool,
    problems: Map<String, Value>,
    /// The counts of each limit, since the start of the node.
    limits: Vec<LiveLimit>,
    /// The classes of a policy with `shed`, most important first.
    classes: Vec<LiveClass>,
    adaptive: Option<Value>,
    requests: Map<String, Value>,
    store: Value,
    leases: Option<Value>,
    upstreams: Vec<UpstreamStatus>,
    readers: Value,
}

#[derive(Serialize)]
struct LiveLimit {
    name: Box<str>,
    mode: &'static str,
    admitted: u64,
    refused: u64,
    shadow_refused: u64,
    /// Decisions by a failure policy: admitted. `fail_closed` counts the refused ones.
    fail_open: u64,
    fail_closed: u64,
    local_admitted: u64,
    local_refused: u64,
}

#[derive(Serialize)]
struct LiveClass {
    name: Box<str>,
    offered: u64,
    admitted: u64,
    /// Shed requests, by reason.
    shed: Map<String, Value>,
    /// Requests whose clients left the queue.
    left: u64,
    shadow_shed: u64,
    in_flight: u64,
    /// Requests in flight that hold a slot of the adaptive shedder.
    at_upstream: u64,
}

impl LiveSource {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self { admin, is_new: true }
    }
}

impl EventSource for LiveSource {
    const EVERY: Duration = Duration::from_secs(1);

    fn write(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_new) {
            push_event(out, "history", &self.admin.node.history.view());
        }
        out.extend_from_slice(&self.admin.live_event());
    }
}

impl Admin {
    /// The event with the current counters.
    fn live_event(&self) -> Bytes {
        let now_us = self.node.clock.now_us();
        let mut last = lock(&self.live.0);
        if last.1.is_empty() || now_us.saturating_sub(last.0) >= FRESH_US {
            let mut event = Vec::new();
            push_event(&mut event, "figures", &self.live_view(now_us));
            *last = (now_us, event.into());
        }
        last.1.clone()
    }

    fn live_view(&self, now_us: u64) -> LiveView {
        let node = &self.node;
        let now = node.snapshot();
        let rules = node.gate.rules();
        let limits = rules.policy().limits().iter().enumerate();
        let places: BTreeMap<&str, (usize, Mode)> =
            limits.map(|(place, limit)| (&*limit.name, (place, limit.mode))).collect();
        let place = |name: &str| places.get(name).copied().unwrap_or((usize::MAX, Mode::Enforce));
        let problems = node.health.problems().into_iter();
        let mut counted: Vec<&LimitCounters> = now.limits.iter().collect();
        counted.sort_by_key(|limit| place(&limit.name).0);
        LiveView {
            time: rfc3339(now_us),
            generation: now.generation,
            ready: node.health.is_ready(),
            problems: problems
                .map(|(subject, text)| (subject.into_owned(), String::from(text).into()))
                .collect(),
            limits: counted
                .into_iter()
                .map(|limit| {
                    let mode = place(&limit.name).1.word();
                    LiveLimit::new(limit.name.clone(), mode, &limit.counts)
                })
                .collect(),
            classes: classes_view(rules.policy(), &now),
            adaptive: node.gate.adaptive().map(|adaptive| {
                json!({
                    "limit": adaptive.limit,
                    "in_flight": adaptive.in_flight,
                    "waiting": adaptive.waiting,
                    "overloaded": adaptive.is_overloaded,
                })
            }),
            requests: node.metrics.request_totals(),
            store: self.store_view(&now),
            leases: node.gate.store().is_shared().then(|| leases_view(&now.leases)),
            upstreams: self
                .gateway
                .get()
                .map(|gateway| gateway.upstream_statuses(now_us))
                .unwrap_or_default(),
            readers: json!({
                "streams": node.streams.open(),
                "tail": node.tail.reader_count(),
                "stalled": node.streams.stalled(),
            }),
        }
    }

    fn store_view(&self, now: &MetricsSnapshot) -> Value {
        let is_shared = self.node.gate.store().is_shared();
        let count = |kind: StoreErrorKind| {
            now.store_errors.iter().filter(|one| one.0 == kind).map(|one| one.1).sum::<u64>()
        };
        let errors: Map<String, Value> = StoreErrorKind::ALL
            .into_iter()
            .map(|kind| (kind.label().to_owned(), count(kind).into()))
            .collect();
        json!({
            "kind": if is_shared { "redis" } else { "memory" },
            "keys": now.memory.keys,
            "bytes": now.memory.bytes,
            "evicted": now.memory.evicted,
            "breaker_open": now.breaker_open,
            "clock_leaps": now.store_clock_leaps,
            "errors": errors,
        })
    }
}

fn classes_view(policy: &Policy, now: &MetricsSnapshot) -> Vec<LiveClass> {
    let place = |name: &str| policy.classes().position(|class| class == name);
    let mut classes: Vec<&ClassMetrics> = now.classes.iter().collect();
    // Classes of earlier files are last.
    classes.sort_by_key(|class| place(&class.name).unwrap_or(usize::MAX));
    let view = |ClassMetrics { name, counts, at_upstream, .. }: &ClassMetrics| LiveClass {
        name: name.clone(),
        offered: counts.offered(),
        admitted: counts.admitted,
        shed: ShedReason::ALL
            .into_iter()
            .zip(counts.shed)
            .map(|(reason, count)| (reason.name().to_owned(), count.into()))
            .collect(),
        left: counts.left,
        shadow_shed: counts.shadow_shed.iter().sum(),
        in_flight: counts.in_flight,
        at_upstream: *at_upstream,
    };
    classes.into_iter().map(view).collect()
}

fn leases_view(leases: &LeaseStats) -> Value {
    json!({
        "keys": leases.leases,
        "held": leases.held,
        "granted": leases.granted,
        "spent": leases.spent,
        "returned": leases.returned,
        "stranded": leases.stranded,
        "rollbacks": leases.rollbacks,
        "in_grace_period": leases.in_grace_period,
    })
}

impl LiveLimit {
    fn new(name: Box<str>, mode: &'static str, counts: &Counts) -> Self {
        Self {
            name,
            mode,
            admitted: counts.admitted,
            refused: counts.refused,
            shadow_refused: counts.shadow_refused,
            fail_open: counts.fail_open,
            fail_closed: counts.fail_closed,
            local_admitted: counts.local_admitted,
            local_refused: counts.local_refused,
        }
    }
}
