//! The text of `/metrics`. The names of the families are a contract with dashboards.

use super::family_writer::{FamilyType, FamilyWriter, Seconds, buckets};
use super::process::Process;
use super::text::TextPage;
use super::{
    AdminDenial, BUCKET_BOUNDS_NS, FrontCounters, Metrics, MetricsSnapshot, Outcome, ReloadResult,
    UpstreamFailure, lock,
};
use crate::otlp::{Signal, lost_batches};
use FamilyType::{Counter, Gauge};
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate::engine::{CandidateCounts, Counts, ShedCounts, ShedReason};
use tollgate_net::Stats;
use tollgate_policy::settings::Front;
use tollgate_store::StoreErrorKind;

/// The format of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// The Prometheus text format, version 0.0.4, which every reader knows.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0, the first choice of a Prometheus server.
    OpenMetrics,
}

impl ExpositionFormat {
    /// Chooses the format by the request's `Accept` header: OpenMetrics if named and not refused.
    pub fn of_accept(accept: &str) -> Self {
        let wanted = accept.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let named = parts
                .next()
                .is_some_and(|media| media.eq_ignore_ascii_case("application/openmetrics-text"));
            let refused = |part: &str| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
            named && !parts.any(refused)
        });
        if wanted { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The `Content-Type` of the response.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Reads one figure.
type Figure<T> = fn(&T) -> u64;

/// Metrics without labels.
#[rustfmt::skip]
const FIGURES: [(FamilyType, &str, Figure<MetricsSnapshot>, &str); 24] = [
    (Gauge, "tollgate_memory_keys", |now| now.memory.keys,
        "Keys in the memory store."),
    (Gauge, "tollgate_memory_bytes", |now| now.memory.bytes,
        "Bytes used by the memory store, as counted against its cap."),
    (Counter, "tollgate_memory_evictions", |now| now.memory.evicted,
        "Keys that the full memory store evicted although they were not idle."),
    (Counter, "tollgate_uncounted_refusals", |now| now.memory.uncounted,
        "Refusals that no penalty counted, because the memory store was full."),
    (Counter, "tollgate_lease_rollbacks", |now| now.leases.rollbacks,
        "Losses of granted units in the store, noticed by this node."),
    (Counter, "tollgate_lease_grace_periods", |now| now.leases.grace_periods,
        "Grace periods, in which no units are leased."),
    (Counter, "tollgate_lease_granted_units", |now| now.leases.granted,
        "Units of leased limits that the store granted in advance."),
    (Counter, "tollgate_lease_spent_units", |now| now.leases.spent,
        "Units that requests took from leases."),
    (Counter, "tollgate_lease_returned_units", |now| now.leases.returned,
        "Units returned to the store unspent."),
    (Counter, "tollgate_lease_stranded_units", |now| now.leases.stranded,
        "Units that could neither be spent nor returned."),
    (Gauge, "tollgate_lease_held_units", |now| now.leases.held,
        "Units that leases hold now."),
    (Gauge, "tollgate_lease_keys", |now| now.leases.leases,
        "Keys with a lease, now or recently."),
    (Counter, "tollgate_lease_store_calls", |now| now.leases.calls,
        "Calls to the store to get units, to return them, or to report those held."),
    (Gauge, "tollgate_breaker_open", |now| u64::from(now.breaker_open),
        "Whether the store's circuit breaker is open."),
    (Counter, "tollgate_store_clock_leaps", |now| now.store_clock_leaps,
        "Leaps of the store's clock, ahead or back, by more than a second."),
    (Gauge, "tollgate_policy_generation", |now| now.generation,
        "Generation of the policy in force."),
    (Counter, "tollgate_log_lines_dropped", |now| now.log_lines_dropped,
        "Lines of the log that were dropped because standard error was not read."),
    (Gauge, "tollgate_streams_open", |now| now.streams_open,
        "Readers of /v1/live and /v1/tail."),
    (Counter, "tollgate_streams_stalled", |now| now.streams_stalled,
        "Readers of /v1/live and /v1/tail that were cut off because they did not read."),
    (Counter, "tollgate_top_missed", |now| now.top_missed,
        "Decisions missing from all top-key lists."),
    (Counter, "tollgate_usage_rows", |now| now.usage.written_rows,
        "Usage rows written."),
    (Counter, "tollgate_usage_rows_lost", |now| now.usage.lost_rows,
        "Usage rows that could not be written."),
    (Counter, "tollgate_usage_overflow", |now| now.usage.overflowed,
        "Charges counted without their key, because an interval had `max_keys` keys."),
    (Gauge, "tollgate_ready", |now| u64::from(now.is_ready),
        "Whether the node is ready, as /readyz says."),
];

impl Metrics {
    /// Returns the page with all metrics.
    pub fn exposition(&self, now: &MetricsSnapshot, format: ExpositionFormat) -> String {
        let mut page = TextPage::new(format);
        self.write_families(&mut FamilyWriter(&mut page), now);
        page.finish()
    }

    /// Writes all families.
    pub(super) fn write_families(&self, page: &mut FamilyWriter<'_>, now: &MetricsSnapshot) {
        write_limits(page, now);
        if !now.classes.is_empty() {
            write_classes(page, now);
        }
        self.write_requests(page);
        self.gateway.write(page);
        self.tiers.write(page);
        self.write_connections(page);
        self.write_events(page, now);
        for (kind, name, figure, help) in FIGURES {
            page.family(kind, name, help, [([], figure(now))]);
        }
        write_process(page, &Process::read());
    }

    /// Sums one counter of a front end over all threads.
    fn sum(&self, front: Front, counter: impl Fn(&FrontCounters) -> &AtomicU64) -> u64 {
        self.stripes.sum(|stripe| counter(&stripe.fronts[front as usize]))
    }

    /// The requests of a front end by outcome.
    fn outcomes(&self, front: Front) -> [(Outcome, u64); Outcome::ALL.len()] {
        Outcome::ALL.map(|one| (one, self.sum(front, |counters| &counters.outcomes[one as usize])))
    }

    /// Requests by front end and outcome, without zeros and without the admin API.
    pub fn request_totals(&self) -> serde_json::Map<String, serde_json::Value> {
        let fronts = Front::ALL.into_iter().filter(|front| *front != Front::Admin);
        let outcomes = |front: Front| {
            let counted = self.outcomes(front).into_iter().filter(|(_, count)| *count > 0);
            counted.map(|(outcome, count)| (outcome.as_str().to_owned(), count.into())).collect()
        };
        let totals = fronts.map(|front| (front, outcomes(front)));
        let totals = totals.filter(|(_, of): &(_, serde_json::Map<_, _>)| !of.is_empty());
        totals.map(|(front, of)| (front.name().to_owned(), of.into())).collect()
    }

    fn write_requests(&self, page: &mut FamilyWriter<'_>) {
        let requests = Front::ALL.into_iter().flat_map(|front| {
            let labels =
                move |outcome: Outcome| [("front", front.name()), ("outcome", outcome.as_str())];
            self.outcomes(front).map(|(outcome, count)| (labels(outcome), count))
        });
        page.family(Counter, "tollgate_requests", "Requests by front end and outcome.", requests);
        let histograms = Front::ALL.into_iter().map(|front| {
            let count = |bucket: usize| self.sum(front, |counters| &counters.buckets[bucket]);
            let sum_ns = self.sum(front, |counters| &counters.sum_ns);
            (("front", front.name()), Seconds(sum_ns), buckets(&BUCKET_BOUNDS_NS, count))
        });
        let help = "Seconds from a complete request to a ready answer.";
        page.histograms("tollgate_decision_seconds", help, histograms);
    }

    fn write_connections(&self, page: &mut FamilyWriter<'_>) {
        let stats = lock(&self.connection_stats);
        let sum = |front, figure: Figure<Stats>| {
            stats.iter().filter(|(of, _)| *of == front).map(|(_, stats)| figure(stats)).sum::<u64>()
        };
        let by_front = |figure: Figure<Stats>| {
            Front::ALL.map(|front| ([("front", front.name())], sum(front, figure)))
        };
        let open = by_front(Stats::open);
        page.family(Gauge, "tollgate_connections_open", "Open connections.", open);
        let help = "Connections that could not be accepted.";
        page.family(Counter, "tollgate_accept_errors", help, by_front(Stats::accept_errors));
        let reasons: [(_, Figure<Stats>); 3] =
            [("expired", Stats::expired), ("evicted", Stats::evicted), ("cut", Stats::cut)];
        let closed = Front::ALL.into_iter().flat_map(|front| {
            reasons.map(|(reason, figure)| {
                ([("front", front.name()), ("reason", reason)], sum(front, figure))
            })
        });
        let help = "Connections that the server closed before the client was done, by reason.";
        page.family(Counter, "tollgate_connections_closed", help, closed);
        let help = "Requests whose handler panicked.";
        page.family(Counter, "tollgate_panics", help, by_front(Stats::panics));
    }

    fn write_events(&self, page: &mut FamilyWriter<'_>, now: &MetricsSnapshot) {
        let errors = StoreErrorKind::ALL.into_iter().zip(&self.store_errors).map(|(kind, own)| {
            let met = now.store_errors.iter().filter(|one| one.0 == kind).map(|one| one.1);
            ([("kind", kind.label())], load(own) + met.sum::<u64>())
        });
        page.family(Counter, "tollgate_store_errors", "Failures of the store by kind.", errors);
        let leases = &now.leases;
        let decisions =
            [("lease", leases.local), ("store", leases.direct), ("refusal", leases.refused)];
        let decisions = decisions.map(|(by, count)| ([("by", by)], count));
        let help = "Charges of leased limits, by what decided them.";
        page.family(Counter, "tollgate_lease_decisions", help, decisions);
        let reloads = ReloadResult::ALL
            .map(|result| ([("result", result.as_str())], load(&self.reloads[result as usize])));
        page.family(Counter, "tollgate_reload", "Reloads of the policy by result.", reloads);
        let is_ok = u64::from(!self.reload_failed.load(Ordering::Relaxed));
        let help = "Whether the last reload succeeded; 1 before the first.";
        page.family(Gauge, "tollgate_last_reload_ok", help, [([], is_ok)]);
        let lost = ["decisions", "access"].into_iter().zip(now.record_lines_dropped);
        let lost = lost.map(|(log, count)| ([("log", log)], count));
        let help = "Lines of the decision log and the access log that were dropped.";
        page.family(Counter, "tollgate_record_lines_dropped", help, lost);
        let denied = AdminDenial::ALL
            .map(|why| ([("reason", why.as_str())], load(&self.denied[why as usize])));
        let help = "Calls that the admin API denied, by reason.";
        page.family(Counter, "tollgate_admin_denied", help, denied);
        let failures = UpstreamFailure::ALL
            .map(|why| ([("kind", why.as_str())], load(&self.upstream_failures[why as usize])));
        let help = "Requests that no upstream answered, by kind of failure.";
        page.family(Counter, "tollgate_upstream_errors", help, failures);
        let lost = Signal::ALL.map(|one| ([("signal", one.name())], lost_batches(one)));
        let help = "Batches of spans and metrics that the collector did not take.";
        page.family(Counter, "tollgate_otlp_lost_batches", help, lost);
        let help = "Changes refused because they could not be written to the audit log.";
        page.family(Counter, "tollgate_audit_failures", help, [([], load(&self.audit_failures))]);
    }
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn write_limits(page: &mut FamilyWriter<'_>, now: &MetricsSnapshot) {
    let outcomes: [(_, Figure<Counts>); 7] = [
        ("admitted", |counts| counts.admitted),
        ("refused", |counts| counts.refused),
        ("shadow_refused", |counts| counts.shadow_refused),
        ("fail_open", |counts| counts.fail_open),
        ("fail_closed", |counts| counts.fail_closed),
        ("local_admitted", |counts| counts.local_admitted),
        ("local_refused", |counts| counts.local_refused),
    ];
    let decisions = now.limits.iter().flat_map(|limit| {
        outcomes.map(|(outcome, count)| {
            ([("limit", &*limit.name), ("outcome", outcome)], count(&limit.counts))
        })
    });
    page.family(Counter, "tollgate_decisions", "Decisions by limit and outcome.", decisions);
    if !now.candidates.is_empty() {
        write_candidates(page, now);
    }
    let overrides = ["fleet", "node"].into_iter().zip(now.mode_overrides);
    let overrides = overrides.map(|(scope, count)| ([("scope", scope)], count));
    page.family(Gauge, "tollgate_mode_overrides", "Active mode overrides.", overrides);
    let hits = now.limits.iter();
    let hits = hits.map(|limit| ([("limit", &*limit.name)], limit.counts.deny_cache_hits));
    let help = "Refusals answered by the deny cache.";
    page.family(Counter, "tollgate_deny_cache_hits", help, hits);
    let overflowed = now.limits.iter().map(|limit| ([("limit", &*limit.name)], limit.overflowed));
    let help = "Decisions for new keys in shared cells, because the memory store was full.";
    page.family(Counter, "tollgate_overflow", help, overflowed);
}

/// Writes the family of limits with a candidate.
fn write_candidates(page: &mut FamilyWriter<'_>, now: &MetricsSnapshot) {
    let outcomes: [(_, Figure<CandidateCounts>); 3] = [
        ("same", |counts| counts.same),
        ("would_refuse", |counts| counts.would_refuse),
        ("would_admit", |counts| counts.would_admit),
    ];
    let compared = now.candidates.iter().flat_map(|(name, counts)| {
        outcomes.map(|(outcome, count)| ([("limit", &**name), ("outcome", outcome)], count(counts)))
    });
    let help = "Decisions of limits, compared with those of their candidates.";
    page.family(Counter, "tollgate_candidate", help, compared);
}

/// Writes the families of a policy with `shed`.
fn write_classes(page: &mut FamilyWriter<'_>, now: &MetricsSnapshot) {
    let figures: [(_, _, Figure<ShedCounts>, _); 4] = [
        (
            Counter,
            "tollgate_class_offered",
            ShedCounts::offered,
            "Requests that shedders admitted or shed, or whose clients left the queue.",
        ),
        (
            Counter,
            "tollgate_class_admitted",
            |now| now.admitted,
            "Requests that shedders admitted.",
        ),
        (
            Counter,
            "tollgate_class_left",
            |now| now.left,
            "Requests whose clients left the queue of the adaptive shedder.",
        ),
        (Gauge, "tollgate_in_flight", |now| now.in_flight, "Requests in flight at this node."),
    ];
    for (kind, name, figure, help) in figures {
        let rows = now.classes.iter().map(|one| ([("class", &*one.name)], figure(&one.counts)));
        page.family(kind, name, help, rows);
    }
    type ByReason = fn(&ShedCounts) -> [u64; ShedReason::ALL.len()];
    let by_reason: [(_, ByReason, _); 2] = [
        ("tollgate_shed", |now| now.shed, "Requests that were shed, by class and reason."),
        (
            "tollgate_shed_shadow",
            |now| now.shadow_shed,
            "Requests that a shedder in shadow mode would have shed.",
        ),
    ];
    for (name, figure, help) in by_reason {
        let rows = now.classes.iter().flat_map(|one| {
            let reasons = ShedReason::ALL.into_iter().zip(figure(&one.counts));
            reasons.map(|(why, count)| ([("class", &*one.name), ("reason", why.name())], count))
        });
        page.family(Counter, name, help, rows);
    }
    let waited = now
        .classes
        .iter()
        .map(|one| ([("class", &*one.name)], Seconds(one.queue_us.saturating_mul(1_000))));
    let help = "Time that requests waited in the queue of the adaptive shedder.";
    page.family(Counter, "tollgate_shed_queue_seconds", help, waited);
    if let Some(limit) = now.adaptive_limit {
        let help = "Requests in flight that the adaptive shedder admits at this node.";
        page.family(Gauge, "tollgate_adaptive_limit", help, [([], u64::from(limit))]);
    }
}

fn write_process(page: &mut FamilyWriter<'_>, process: &Process) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    page.family(
        Gauge,
        "tollgate_build_info",
        "The version that runs; always 1.",
        [(version, 1_u64)],
    );
    let times = [
        (Counter, "process_cpu_seconds", "Processor time, user and system.", process.cpu),
        (
            Gauge,
            "process_start_time_seconds",
            "When the process started, in seconds since 1970.",
            process.start,
        ),
    ];
    for (kind, name, help, time) in times {
        let time = time.map(|time| Seconds(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
        if let Some(time) = time {
            page.family(kind, name, help, [([], time)]);
        }
    }
    let gauges = [
        ("process_resident_memory_bytes", "Resident memory.", process.resident_bytes),
        ("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes),
        ("process_threads", "Threads.", process.threads),
        ("process_open_fds", "Open file descriptors.", process.open_fds),
        ("process_max_fds", "Limit of open file descriptors.", process.max_fds),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            page.family(Gauge, name, help, [([], value)]);
        }
    }
}
