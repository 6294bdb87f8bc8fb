use super::MetricsPusher;
use crate::ObservedNode;
use crate::metrics::{ExpositionFormat, Front, Outcome};
use crate::otlp::tests::collector::{Collector, text};
use crate::otlp::{OtlpOptions, Signal, lost_batches};
use crate::tests::TestNode;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Metric, metric::Data, number_data_point::Value,
};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tollgate_net::Stats;

const START_US: u64 = 1_700_000_000_000_000;

/// Creates a node with every kind of family: classes, a limit name that needs escaping, times.
fn node() -> Arc<TestNode> {
    let file = "limits: [{name: 'per \"user\"', key: [user], rate: 2/min}]
classes: [{name: first, match: {path: /a}}, {name: second, default: true}]
shed: {adaptive: {}}";
    let node = TestNode::in_folder(Path::new(""), file);
    node.metrics.register_stats(Front::Http, Arc::new(Stats::default()));
    node.metrics.count_requests(Front::Http, Outcome::Refused, 7);
    for us in [3, 30, 30, 3_000_000] {
        node.metrics.observe(Front::Http, Duration::from_micros(us));
    }
    node.metrics.responses(Some("10.0.0.1:80")).count(200, 1_500);
    Arc::new(node)
}

fn labels(attributes: &[KeyValue]) -> String {
    let escaped = |one: &str| one.replace('\\', "\\\\").replace('"', "\\\"");
    let pairs = attributes.iter().map(|one| {
        let value = text(std::slice::from_ref(one), &one.key);
        format!("{}=\"{}\"", one.key, escaped(&value))
    });
    pairs.collect::<Vec<_>>().join(",")
}

/// The samples of a metric, named as in the text format.
fn samples(metric: &Metric, now: &mut BTreeMap<String, f64>) {
    let mut put = |suffix: &str, labels: &str, value: f64| {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        assert!(now.insert(format!("{}{suffix}{labels}", metric.name), value).is_none());
    };
    let cumulative = AggregationTemporality::Cumulative as i32;
    let points = match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => {
            assert!(sum.is_monotonic && sum.aggregation_temporality == cumulative);
            assert!(sum.data_points.iter().all(|one| one.start_time_unix_nano == START_US * 1000));
            &sum.data_points
        }
        Data::Gauge(gauge) => &gauge.data_points,
        Data::Histogram(histogram) => {
            assert_eq!(histogram.aggregation_temporality, cumulative);
            for point in &histogram.data_points {
                let labels = labels(&point.attributes);
                put("_sum", &labels, point.sum.unwrap());
                put("_count", &labels, point.count as f64);
                let bounds = point.explicit_bounds.iter().map(f64::to_string);
                let mut below = 0;
                for (bound, count) in bounds.chain(["+Inf".into()]).zip(&point.bucket_counts) {
                    below += count;
                    put("_bucket", &format!("{labels},le=\"{bound}\""), below as f64);
                }
            }
            return;
        }
        other => panic!("{other:?}"),
    };
    for point in points {
        let value = match point.value.unwrap() {
            Value::AsInt(count) => count as f64,
            Value::AsDouble(time) => time,
        };
        put("", &labels(&point.attributes), value);
    }
}

fn all(batch: &ExportMetricsServiceRequest) -> BTreeMap<String, f64> {
    let mut now = BTreeMap::new();
    let metrics = batch.resource_metrics.iter().flat_map(|one| &one.scope_metrics);
    metrics.flat_map(|one| &one.metrics).for_each(|metric| samples(metric, &mut now));
    now
}

/// Whether a metric has the same value in two snapshots; process and time metrics do not.
fn is_steady(name: &str) -> bool {
    !name.starts_with("process_") && !name.starts_with("tollgate_otlp_")
}

#[test]
fn the_collector_gets_every_figure_of_the_page() {
    let (collector, node) = (Collector::start(), node());
    let options = collector.options(Signal::Metrics);
    let pusher = MetricsPusher::start(node.clone(), START_US, &options).unwrap();
    let request = collector.next();
    assert_eq!(request.line, "POST /v1/metrics");
    assert_eq!(request.content_type, "application/x-protobuf");
    assert_eq!(request.tenant.as_deref(), Some("a b"));
    let batch = request.metrics();
    let resource = batch.resource_metrics[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), "tollgate");
    assert_eq!(text(&resource.attributes, "service.instance.id").len(), 32);
    let page = node.metrics.exposition(&node.snapshot(), ExpositionFormat::Prometheus);
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let number = |text: &str| text.parse::<f64>().unwrap();
    // `le="0.0000025"` and `2.5e-6` are the same bound.
    let lines = lines.map(|line| line.rsplit_once(' ').unwrap());
    let mut expected: BTreeMap<String, f64> =
        lines.map(|(name, value)| (with_plain_bound(name), number(value))).collect();
    let mut sent: BTreeMap<String, f64> =
        all(&batch).into_iter().map(|(name, value)| (with_plain_bound(&name), value)).collect();
    assert_eq!(
        expected.keys().filter(|name| name.starts_with("process_")).collect::<Vec<_>>(),
        sent.keys().filter(|name| name.starts_with("process_")).collect::<Vec<_>>()
    );
    expected.retain(|name, _| is_steady(name));
    sent.retain(|name, _| is_steady(name));
    assert!(sent.len() > 200, "{}", sent.len());
    assert_eq!(sent, expected);
    pusher.stop(Duration::from_secs(60));
}

/// The name of a sample, its bound formatted as Rust formats a float.
fn with_plain_bound(name: &str) -> String {
    let Some((head, bound)) = name.split_once("le=\"") else { return name.to_owned() };
    let (bound, tail) = bound.split_once('"').unwrap();
    match bound.parse::<f64>() {
        Ok(bound) if bound.is_finite() => format!("{head}le=\"{bound}\"{tail}"),
        _ => name.to_owned(),
    }
}

#[test]
fn counters_are_cumulative_and_the_last_ones_are_sent_at_the_end() {
    let (collector, node) = (Collector::start(), node());
    let mut options = collector.options(Signal::Metrics);
    options.interval = Duration::from_secs(3600);
    let pusher = MetricsPusher::start(node.clone(), START_US, &options).unwrap();
    node.metrics.count_requests(Front::Http, Outcome::Refused, 5);
    pusher.stop(Duration::from_secs(60));
    let requests = collector.requests();
    let [request] = requests.as_slice() else { panic!("one batch") };
    let refused = "tollgate_requests_total{front=\"http\",outcome=\"refused\"}";
    assert_eq!(all(&request.metrics())[refused], 12.0);
}

/// A collector that takes a batch and never answers holds one batch and one thread.
#[test]
fn a_collector_that_does_not_answer_keeps_nobody_waiting() {
    let (collector, node) = (Collector::silent(), node());
    let options = collector.options(Signal::Metrics);
    let pusher = MetricsPusher::start(node.clone(), START_US, &options).unwrap();
    drop(collector.next());
    for _ in 0..10_000 {
        node.metrics.count_request(Front::Http, Outcome::Admitted);
    }
    std::thread::sleep(options.interval * 5);
    assert_eq!(collector.requests().len(), 0, "no second batch while the first waits");
    pusher.stop(Duration::from_millis(50));
}

#[test]
fn batches_that_are_not_taken_are_counted() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let read = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT" => Some(format!("http://{nobody}/v1/metrics")),
        "OTEL_METRIC_EXPORT_INTERVAL" => Some("3600000".to_owned()),
        _ => None,
    };
    let options = OtlpOptions::read(Signal::Metrics, read).unwrap().unwrap();
    let before = lost_batches(Signal::Metrics);
    let node = node();
    MetricsPusher::start(node.clone(), START_US, &options).unwrap().stop(Duration::from_secs(60));
    assert_eq!(lost_batches(Signal::Metrics), before + 1);
    let page = node.metrics.exposition(&node.snapshot(), ExpositionFormat::Prometheus);
    let line = format!("tollgate_otlp_lost_batches_total{{signal=\"metrics\"}} {}\n", before + 1);
    assert!(page.contains(&line), "{page}");
}
