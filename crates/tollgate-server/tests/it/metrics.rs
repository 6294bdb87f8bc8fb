//! All counters are on `/metrics`, under their documented names.

use crate::exposition::Page;
use std::sync::Arc;
use std::time::Duration;
use tollgate::engine::Counts;
use tollgate_observe::metrics::{
    AdminDenial, ExpositionFormat, Front, LimitCounters, Metrics, MetricsSnapshot, Outcome,
    ReloadResult, UpstreamFailure,
};
use tollgate_store::StoreErrorKind;

fn page(metrics: &Metrics, reading: &MetricsSnapshot) -> Page {
    let text = metrics.exposition(reading, ExpositionFormat::Prometheus);
    Page::prometheus(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn open_page(metrics: &Metrics, reading: &MetricsSnapshot) -> Page {
    let text = metrics.exposition(reading, ExpositionFormat::OpenMetrics);
    Page::open_metrics(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn limit(name: &str, first: u64) -> LimitCounters {
    let mut counts = Counts::default();
    counts.admitted = first;
    counts.refused = first + 1;
    counts.shadow_refused = first + 2;
    counts.fail_open = first + 3;
    counts.fail_closed = first + 4;
    counts.local_admitted = first + 5;
    counts.local_refused = first + 6;
    counts.deny_cache_hits = first + 7;
    LimitCounters { name: name.into(), counts, overflowed: first + 8 }
}

/// All families: name in the Prometheus format, type, and labels.
const FAMILIES: &[(&str, &str, &[&str])] = &[
    ("tollgate_decisions_total", "counter", &["limit", "outcome"]),
    ("tollgate_mode_overrides", "gauge", &["scope"]),
    ("tollgate_requests_total", "counter", &["front", "outcome"]),
    ("tollgate_store_errors_total", "counter", &["kind"]),
    ("tollgate_deny_cache_hits_total", "counter", &["limit"]),
    ("tollgate_overflow_total", "counter", &["limit"]),
    ("tollgate_memory_keys", "gauge", &[]),
    ("tollgate_lease_rollbacks_total", "counter", &[]),
    ("tollgate_lease_grace_periods_total", "counter", &[]),
    ("tollgate_lease_granted_units_total", "counter", &[]),
    ("tollgate_lease_spent_units_total", "counter", &[]),
    ("tollgate_lease_returned_units_total", "counter", &[]),
    ("tollgate_lease_stranded_units_total", "counter", &[]),
    ("tollgate_lease_held_units", "gauge", &[]),
    ("tollgate_lease_keys", "gauge", &[]),
    ("tollgate_lease_store_calls_total", "counter", &[]),
    ("tollgate_lease_decisions_total", "counter", &["by"]),
    ("tollgate_reload_total", "counter", &["result"]),
    ("tollgate_breaker_open", "gauge", &[]),
    ("tollgate_store_clock_leaps_total", "counter", &[]),
    ("tollgate_decision_seconds", "histogram", &["front"]),
    ("tollgate_build_info", "gauge", &["version"]),
    ("tollgate_record_lines_dropped_total", "counter", &["log"]),
    ("tollgate_usage_rows_total", "counter", &[]),
    ("tollgate_usage_rows_lost_total", "counter", &[]),
    ("tollgate_usage_overflow_total", "counter", &[]),
    ("tollgate_ready", "gauge", &[]),
    ("tollgate_last_reload_ok", "gauge", &[]),
    ("tollgate_gateway_responses_total", "counter", &["upstream", "class"]),
    ("tollgate_gateway_seconds", "histogram", &["upstream"]),
    ("tollgate_connections_open", "gauge", &["front"]),
    ("tollgate_accept_errors_total", "counter", &["front"]),
    ("tollgate_connections_closed_total", "counter", &["front", "reason"]),
    ("tollgate_panics_total", "counter", &["front"]),
    ("tollgate_memory_bytes", "gauge", &[]),
    ("tollgate_memory_evictions_total", "counter", &[]),
    ("tollgate_uncounted_refusals_total", "counter", &[]),
    ("tollgate_policy_generation", "gauge", &[]),
    ("tollgate_admin_denied_total", "counter", &["reason"]),
    ("tollgate_upstream_errors_total", "counter", &["kind"]),
    ("tollgate_audit_failures_total", "counter", &[]),
    ("tollgate_log_lines_dropped_total", "counter", &[]),
    ("tollgate_streams_open", "gauge", &[]),
    ("tollgate_streams_stalled_total", "counter", &[]),
    ("tollgate_otlp_lost_batches_total", "counter", &["signal"]),
    ("tollgate_top_missed_total", "counter", &[]),
];

#[test]
fn every_family_has_its_name_type_and_labels_in_both_formats() {
    let reading = MetricsSnapshot { limits: vec![limit("a", 1)], ..MetricsSnapshot::default() };
    let metrics = Metrics::default();
    let (older, newer) = (page(&metrics, &reading), open_page(&metrics, &reading));
    for &(name, kind, labels) in FAMILIES {
        let in_newer = match kind {
            "counter" => name.strip_suffix("_total").unwrap(),
            _ => name,
        };
        for family in [&older.0[name], &newer.0[in_newer]] {
            assert_eq!(family.kind, kind, "{name}");
            assert!(!family.samples.is_empty(), "{name} shows nothing");
            for sample in &family.samples {
                let keys: Vec<&str> = sample
                    .labels
                    .iter()
                    .map(|label| &*label.0)
                    .filter(|key| *key != "le")
                    .collect();
                assert_eq!(keys, labels, "{name}");
            }
        }
    }
    let ours = older.0.keys().filter(|name| name.starts_with("tollgate_"));
    let undocumented: Vec<_> =
        ours.filter(|name| !FAMILIES.iter().any(|family| family.0 == **name)).collect();
    assert!(undocumented.is_empty(), "{undocumented:?}");
}

#[test]
fn what_the_engine_counts_shows_under_its_limit() {
    let mut reading = MetricsSnapshot {
        limits: vec![limit("a", 10), limit("login/ip+user", 100)],
        breaker_open: true,
        ..MetricsSnapshot::default()
    };
    reading.memory.keys = 7;
    reading.leases.rollbacks = 8;
    let page = page(&Metrics::default(), &reading);
    for (name, first) in [("a", 10.0), ("login/ip+user", 100.0)] {
        let outcomes =
            "admitted refused shadow_refused fail_open fail_closed local_admitted local_refused";
        for (outcome, more) in outcomes.split(' ').zip([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) {
            let labels = [("limit", name), ("outcome", outcome)];
            assert_eq!(page.value("tollgate_decisions_total", &labels), Some(first + more));
        }
        let own = [("limit", name)];
        assert_eq!(page.value("tollgate_deny_cache_hits_total", &own), Some(first + 7.0));
        assert_eq!(page.value("tollgate_overflow_total", &own), Some(first + 8.0));
    }
    assert_eq!(page.value("tollgate_memory_keys", &[]), Some(7.0));
    assert_eq!(page.value("tollgate_lease_rollbacks_total", &[]), Some(8.0));
    assert_eq!(page.value("tollgate_breaker_open", &[]), Some(1.0));
}

#[test]
fn a_name_cannot_break_out_of_its_label() {
    for name in ["a\"} 1\nevil 2", "back\\slash", "quo\"te", "üñ", "{}=,"] {
        let reading =
            MetricsSnapshot { limits: vec![limit(name, 1)], ..MetricsSnapshot::default() };
        let labels = [("limit", name), ("outcome", "refused")];
        let pages = [page(&Metrics::default(), &reading), open_page(&Metrics::default(), &reading)];
        for page in pages {
            assert_eq!(page.value("tollgate_decisions_total", &labels), Some(2.0), "{name:?}");
        }
    }
}

#[test]
fn requests_of_all_threads_add_up() {
    let metrics = Arc::new(Metrics::default());
    // More threads than stripes, so that some share one.
    let threads: Vec<_> = (0..40)
        .map(|_| {
            let metrics = Arc::clone(&metrics);
            std::thread::spawn(move || {
                for _ in 0..1_000 {
                    metrics.count_request(Front::Http, Outcome::Admitted);
                    metrics.observe(Front::Http, Duration::from_micros(3));
                }
                metrics.count_request(Front::Grpc, Outcome::FailClosed);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let page = page(&metrics, &MetricsSnapshot::default());
    let requests = |front, outcome| {
        page.value("tollgate_requests_total", &[("front", front), ("outcome", outcome)])
    };
    assert_eq!(requests("http", "admitted"), Some(40_000.0));
    assert_eq!(requests("http", "refused"), Some(0.0));
    assert_eq!(requests("grpc", "fail_closed"), Some(40.0));
    assert_eq!(requests("gateway", "fail_closed"), Some(0.0));
    let count = |front| page.value("tollgate_decision_seconds_count", &[("front", front)]);
    assert_eq!((count("http"), count("grpc")), (Some(40_000.0), Some(0.0)));
}

#[test]
fn every_outcome_has_a_sample_of_its_own() {
    let metrics = Metrics::default();
    for (times, outcome) in (1..).zip(Outcome::ALL) {
        (0..times).for_each(|_| metrics.count_request(Front::Resp, outcome));
    }
    let page = page(&metrics, &MetricsSnapshot::default());
    for (times, outcome) in [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into_iter().zip(Outcome::ALL) {
        let labels = [("front", "resp"), ("outcome", outcome.as_str())];
        assert_eq!(page.value("tollgate_requests_total", &labels), Some(times));
    }
}

#[test]
fn a_time_counts_in_the_first_bucket_that_is_not_below_it() {
    let cases = [
        (Duration::ZERO, "1e-6"),
        (Duration::from_nanos(1_000), "1e-6"),
        (Duration::from_nanos(1_001), "2.5e-6"),
        (Duration::from_micros(100), "0.0001"),
        (Duration::from_millis(1), "0.001"),
        (Duration::from_millis(100), "0.1"),
        (Duration::from_secs(1), "1.0"),
        (Duration::from_secs(1) + Duration::from_nanos(1), "+Inf"),
        (Duration::MAX, "+Inf"),
    ];
    for (elapsed, bound) in cases {
        let metrics = Metrics::default();
        metrics.observe(Front::Admin, elapsed);
        let page = page(&metrics, &MetricsSnapshot::default());
        let family = &page.0["tollgate_decision_seconds"];
        let buckets = family.samples.iter().filter(|sample| {
            sample.name.ends_with("_bucket")
                && sample.labels.contains(&("front".into(), "admin".into()))
        });
        let first = buckets.into_iter().find(|sample| sample.value > 0.0).unwrap();
        let le = &first.labels.iter().find(|label| label.0 == "le").unwrap().1;
        let seconds = |text: &str| text.replace("+Inf", "inf").parse::<f64>().unwrap();
        assert_eq!(seconds(le), seconds(bound), "{elapsed:?}");
    }
    let metrics = Metrics::default();
    metrics.observe(Front::Admin, Duration::from_millis(250));
    metrics.observe(Front::Admin, Duration::from_millis(500));
    let page = page(&metrics, &MetricsSnapshot::default());
    assert_eq!(page.value("tollgate_decision_seconds_sum", &[("front", "admin")]), Some(0.75));
}

#[test]
fn events_of_the_node_count_one_each() {
    let metrics = Metrics::default();
    metrics.reload(ReloadResult::Ok);
    metrics.reload(ReloadResult::Error);
    metrics.reload(ReloadResult::Error);
    metrics.store_error(StoreErrorKind::Busy);
    metrics.admin_denied(AdminDenial::Wrong);
    metrics.upstream_failed(UpstreamFailure::Timeout);
    metrics.audit_failure();
    let page = page(&metrics, &MetricsSnapshot::default());
    for (name, labels, value) in [
        ("tollgate_reload_total", Some(("result", "ok")), 1.0),
        ("tollgate_reload_total", Some(("result", "error")), 2.0),
        ("tollgate_store_errors_total", Some(("kind", "busy")), 1.0),
        ("tollgate_store_errors_total", Some(("kind", "timeout")), 0.0),
        ("tollgate_admin_denied_total", Some(("reason", "wrong")), 1.0),
        ("tollgate_admin_denied_total", Some(("reason", "missing")), 0.0),
        ("tollgate_upstream_errors_total", Some(("kind", "timeout")), 1.0),
        ("tollgate_upstream_errors_total", Some(("kind", "connect")), 0.0),
        ("tollgate_audit_failures_total", None, 1.0),
    ] {
        let labels: Vec<_> = labels.into_iter().collect();
        assert_eq!(page.value(name, &labels), Some(value), "{name} {labels:?}");
    }
}

#[test]
fn open_metrics_is_for_those_who_ask_for_it() {
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.1";
    for (accept, format) in [
        ("", ExpositionFormat::Prometheus),
        ("*/*", ExpositionFormat::Prometheus),
        ("text/plain;version=0.0.4", ExpositionFormat::Prometheus),
        (prometheus, ExpositionFormat::OpenMetrics),
        ("text/html, Application/OpenMetrics-Text", ExpositionFormat::OpenMetrics),
        ("application/openmetrics-text; q=0, */*", ExpositionFormat::Prometheus),
        ("application/openmetrics-textual", ExpositionFormat::Prometheus),
    ] {
        assert_eq!(ExpositionFormat::of_accept(accept), format, "{accept}");
    }
    assert!(ExpositionFormat::Prometheus.content_type().starts_with("text/plain; version=0.0.4"));
    assert!(
        ExpositionFormat::OpenMetrics
            .content_type()
            .starts_with("application/openmetrics-text; version=1.0.0")
    );
}

#[test]
fn the_reference_names_every_metric() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let reference = std::fs::read_to_string(path).unwrap();
    for (name, kind, _) in FAMILIES {
        let mut rows = reference.lines().filter(|line| line.starts_with("| `tollgate_"));
        let row = rows.find(|line| line.contains(&format!("`{name}`")));
        assert!(row.is_some_and(|row| row.contains(&format!("| {kind} |"))), "{name}: {row:?}");
    }
}
