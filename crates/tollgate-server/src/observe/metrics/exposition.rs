//! The text that `/metrics` answers with.
//!
//! The names are a contract. `prometheus-client` writes OpenMetrics, where a family of counters is
//! named without the `_total` that its samples carry; in the older text format, which is what a
//! bare `curl` gets, the two are the same.

use super::process::Process;
use super::sheet::{FamilyWriter, to_prometheus_text};
use super::{
    AdminDenial, BUCKET_BOUNDS_NS, FRONTS, FrontCounters, Metrics, MetricsSnapshot, Outcome,
    ReloadResult, UpstreamFailure,
};
use crate::net::Stats;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_store::StoreErrorKind;

/// How the text is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpositionFormat {
    /// The Prometheus text format, version 0.0.4: read by everything.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0: what a Prometheus server asks for first.
    OpenMetrics,
}

impl ExpositionFormat {
    /// The format to answer a request's `Accept` with: OpenMetrics where it is named and not
    /// refused.
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

    /// The answer's `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Metrics {
    /// All figures as text.
    pub fn exposition(&self, reading: MetricsSnapshot, format: ExpositionFormat) -> String {
        let exposition = Exposition {
            fronts: self.front_totals(),
            counters: self.counter_values(),
            snapshot: reading,
            process: Process::read(),
        };
        let mut registry = Registry::default();
        registry.register_collector(Box::new(exposition));
        let mut out = String::with_capacity(16 * 1024);
        // A `String` takes all that is written to it, and nothing else here fails.
        let written = match format {
            ExpositionFormat::Prometheus => text::encode_registry(&mut out, &registry),
            ExpositionFormat::OpenMetrics => text::encode(&mut out, &registry),
        };
        debug_assert!(written.is_ok());
        match format {
            ExpositionFormat::Prometheus => to_prometheus_text(&out),
            ExpositionFormat::OpenMetrics => out,
        }
    }

    fn front_totals(&self) -> Vec<(&'static str, FrontTotals)> {
        let sum = |at: usize| {
            let mut sums = FrontTotals::default();
            self.stripes.iter().for_each(|stripe| sums.add(&stripe.fronts[at]));
            sums
        };
        FRONTS.iter().enumerate().map(|(at, front)| (front.name(), sum(at))).collect()
    }

    fn counter_values(&self) -> CounterValues {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let fronts = || FRONTS.iter().map(|front| front.name()).zip(&self.connections);
        let open = |opened: u64, closed: u64| opened.saturating_sub(closed);
        CounterValues {
            connections: fronts()
                .map(|(front, of)| (front, open(load(&of.opened), load(&of.closed))))
                .collect(),
            closed: self.sum_connection_stats(|stats| {
                [("expired", stats.expired()), ("evicted", stats.evicted()), ("cut", stats.cut())]
            }),
            panics: self.sum_connection_stats(|stats| [("", stats.panics())]),
            accept_errors: fronts().map(|(front, of)| (front, load(&of.accept_errors))).collect(),
            store_errors: StoreErrorKind::ALL
                .iter()
                .zip(&self.store_errors)
                .map(|(kind, count)| (*kind, load(count)))
                .collect(),
            reloads: ReloadResult::ALL
                .map(|result| (result.as_str(), load(&self.reloads[result as usize])))
                .into(),
            denied: AdminDenial::ALL
                .map(|why| (why.as_str(), load(&self.denied[why as usize])))
                .into(),
            upstream_failures: UpstreamFailure::ALL
                .map(|why| (why.as_str(), load(&self.upstream_failures[why as usize])))
                .into(),
            audit_failures: load(&self.audit_failures),
        }
    }
}

impl Metrics {
    /// A figure of the connections of each front end, by name, over all who serve it.
    fn sum_connection_stats<const N: usize>(
        &self,
        figures: impl Fn(&Stats) -> [(&'static str, u64); N],
    ) -> FrontLabelledCounts {
        let served = self.connection_stats.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for front in FRONTS {
            let mut sums = figures(&Stats::default());
            for (_, stats) in served.iter().filter(|(other, _)| *other == front) {
                let more = figures(stats);
                sums.iter_mut().zip(more).for_each(|(sum, (_, count))| sum.1 += count);
            }
            rows.extend(sums.map(|(figure, count)| (front.name(), figure, count)));
        }
        rows
    }
}

/// The figures of one front end over all stripes.
#[derive(Debug, Default)]
pub(super) struct FrontTotals {
    outcomes: [u64; Outcome::ALL.len()],
    pub(super) sum_ns: u64,
    pub(super) buckets: [u64; BUCKET_BOUNDS_NS.len() + 1],
}

impl FrontTotals {
    fn add(&mut self, cells: &FrontCounters) {
        let add = |sum: &mut u64, cell: &AtomicU64| {
            *sum = sum.wrapping_add(cell.load(Ordering::Relaxed));
        };
        self.outcomes.iter_mut().zip(&cells.outcomes).for_each(|(sum, cell)| add(sum, cell));
        self.buckets.iter_mut().zip(&cells.buckets).for_each(|(sum, cell)| add(sum, cell));
        add(&mut self.sum_ns, &cells.sum_ns);
    }
}

/// Figures by the value of their one label.
type LabelledCounts = Vec<(&'static str, u64)>;

/// Figures by front end and name.
type FrontLabelledCounts = Vec<(&'static str, &'static str, u64)>;

#[derive(Debug)]
struct CounterValues {
    connections: LabelledCounts,
    closed: FrontLabelledCounts,
    panics: FrontLabelledCounts,
    accept_errors: LabelledCounts,
    store_errors: Vec<(StoreErrorKind, u64)>,
    reloads: LabelledCounts,
    denied: LabelledCounts,
    upstream_failures: LabelledCounts,
    audit_failures: u64,
}

/// Everything on the page, at one moment.
#[derive(Debug)]
struct Exposition {
    fronts: Vec<(&'static str, FrontTotals)>,
    counters: CounterValues,
    snapshot: MetricsSnapshot,
    process: Process,
}

impl Collector for Exposition {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = FamilyWriter(encoder);
        self.limits(&mut sheet)?;
        self.requests(&mut sheet)?;
        self.store(&mut sheet)?;
        self.admin(&mut sheet)?;
        self.process(&mut sheet)
    }
}

impl Exposition {
    fn limits(&self, sheet: &mut FamilyWriter<'_>) -> fmt::Result {
        let limits = &self.snapshot.limits;
        let decisions = limits.iter().flat_map(|of| {
            [
                ("admitted", of.admitted),
                ("refused", of.refused),
                ("shadow_refused", of.shadow_refused),
                ("fail_open", of.fail_open),
                ("fail_closed", of.fail_closed),
            ]
            .map(|(outcome, count)| ([("limit", &*of.name), ("outcome", outcome)], count))
        });
        sheet.counters("tollgate_decisions", "Decisions by limit and outcome.", decisions)?;
        let hits = limits.iter().map(|of| ([("limit", &*of.name)], of.deny_cache_hits));
        let help = "Refusals answered from memory of an earlier one.";
        sheet.counters("tollgate_deny_cache_hits", help, hits)?;
        let overflowed = limits.iter().map(|of| ([("limit", &*of.name)], of.overflowed));
        let help = "Decisions for new keys that shared a cell, since the memory store was full.";
        sheet.counters("tollgate_overflow", help, overflowed)
    }

    fn requests(&self, sheet: &mut FamilyWriter<'_>) -> fmt::Result {
        let requests = self.fronts.iter().flat_map(|(front, of)| {
            Outcome::ALL.map(|outcome| {
                let labels = [("front", *front), ("outcome", outcome.as_str())];
                (labels, of.outcomes[outcome as usize])
            })
        });
        sheet.counters("tollgate_requests", "Requests by front end and outcome.", requests)?;
        let help = "Time from a request read to its answer ready to send.";
        sheet.histograms("tollgate_decision_seconds", help, &self.fronts)?;
        let open =
            self.counters.connections.iter().map(|&(front, count)| ([("front", front)], count));
        sheet.gauges("tollgate_connections_open", "Connections that are open.", open)?;
        let failed =
            self.counters.accept_errors.iter().map(|&(front, count)| ([("front", front)], count));
        let help = "Connections that could not be accepted.";
        sheet.counters("tollgate_accept_errors", help, failed)?;
        let closed = self.counters.closed.iter();
        let closed =
            closed.map(|&(front, why, count)| ([("front", front), ("reason", why)], count));
        let help = "Connections closed from this side before their peer was done, by reason.";
        sheet.counters("tollgate_connections_closed", help, closed)?;
        let panics =
            self.counters.panics.iter().map(|&(front, _, count)| ([("front", front)], count));
        sheet.counters("tollgate_panics", "Requests whose handler panicked.", panics)
    }

    fn store(&self, sheet: &mut FamilyWriter<'_>) -> fmt::Result {
        let reading = &self.snapshot;
        let met =
            |kind| reading.store_errors.iter().filter(move |one| one.0 == kind).map(|one| one.1);
        let errors = self
            .counters
            .store_errors
            .iter()
            .map(|&(kind, count)| ([("kind", kind.label())], count + met(kind).sum::<u64>()));
        sheet.counters("tollgate_store_errors", "Failures of the store by kind.", errors)?;
        let help = "Keys in the memory store.";
        sheet.gauge("tollgate_memory_keys", help, reading.memory_keys)?;
        let help = "Bytes in use in the memory store, as counted against its cap.";
        sheet.gauge("tollgate_memory_bytes", help, reading.memory_bytes)?;
        let help = "Keys that the full memory store forgot although they were not idle.";
        sheet.counter("tollgate_memory_evictions", help, reading.evicted)?;
        let help = "Refusals that no penalty counted, for want of memory.";
        sheet.counter("tollgate_uncounted_refusals", help, reading.uncounted)?;
        self.leases(sheet)?;
        let help = "Whether the store's circuit breaker is open.";
        sheet.gauge("tollgate_breaker_open", help, u64::from(reading.breaker_open))
    }

    fn leases(&self, sheet: &mut FamilyWriter<'_>) -> fmt::Result {
        let help = "How often the store had forgotten what it had granted.";
        sheet.counter("tollgate_lease_rollbacks", help, self.snapshot.lease_rollbacks)?;
        let leases = &self.snapshot.leases;
        let help = "Units of leased limits that the store granted in advance.";
        sheet.counter("tollgate_lease_granted_units", help, leases.granted)?;
        let help = "Units that requests took from leases.";
        sheet.counter("tollgate_lease_spent_units", help, leases.spent)?;
        let help = "Units that went back to the store unspent.";
        sheet.counter("tollgate_lease_returned_units", help, leases.returned)?;
        let help = "Units that could neither be spent nor returned any more.";
        sheet.counter("tollgate_lease_stranded_units", help, leases.stranded)?;
        let help = "Units held at the moment.";
        sheet.gauge("tollgate_lease_held_units", help, leases.held)?;
        let help = "Keys of which something is leased, or was lately.";
        sheet.gauge("tollgate_lease_keys", help, leases.keys)?;
        let help = "Calls to the store to get units, to return them, or to say what is held.";
        sheet.counter("tollgate_lease_store_calls", help, leases.calls)?;
        let by = ["lease", "store", "refusal"].map(|by| [("by", by)]);
        let help = "Charges of leased limits, by what decided them.";
        sheet.counters("tollgate_lease_decisions", help, by.into_iter().zip(leases.decisions))
    }

    fn admin(&self, sheet: &mut FamilyWriter<'_>) -> fmt::Result {
        let reloads =
            self.counters.reloads.iter().map(|&(result, count)| ([("result", result)], count));
        sheet.counters("tollgate_reload", "Reloads of the policy by result.", reloads)?;
        let help = "Counts up with every change of the policy.";
        sheet.gauge("tollgate_policy_generation", help, self.snapshot.generation)?;
        let denied = self.counters.denied.iter().map(|&(why, count)| ([("reason", why)], count));
        let help = "Calls of the admin API that were turned away, by reason.";
        sheet.counters("tollgate_admin_denied", help, denied)?;
        let unanswered =
            self.counters.upstream_failures.iter().map(|&(why, count)| ([("kind", why)], count));
        let help = "Requests that no server behind the gateway answered, by kind.";
        sheet.counters("tollgate_upstream_errors", help, unanswered)?;
        let help = "Changes refused since they could not be written to the audit log.";
        sheet.counter("tollgate_audit_failures", help, self.counters.audit_failures)
    }

    fn process(&self, sheet: &mut FamilyWriter<'_>) -> fmt::Result {
        let labels = [("version", env!("CARGO_PKG_VERSION"))];
        let help = "The version that runs; always 1.";
        sheet.gauges("tollgate_build_info", help, [(labels, 1_u64)])?;
        let process = &self.process;
        if let Some(cpu) = process.cpu {
            let help = "Processor time spent, user and system.";
            sheet.counter("process_cpu_seconds", help, cpu.as_secs_f64())?;
        }
        if let Some(start) = process.start {
            let help = "When the process started, in seconds since 1970.";
            sheet.gauge("process_start_time_seconds", help, start.as_secs_f64())?;
        }
        let gauges = [
            ("process_resident_memory_bytes", "Resident memory.", process.resident_bytes),
            ("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes),
            ("process_threads", "Threads.", process.threads),
            ("process_open_fds", "Open file descriptors.", process.open_fds),
            ("process_max_fds", "The most file descriptors there may be.", process.max_fds),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                sheet.gauge(name, help, value)?;
            }
        }
        Ok(())
    }
}
