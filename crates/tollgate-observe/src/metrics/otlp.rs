//! Families as OTLP messages, under their Prometheus names.
//!
//! Counters and histograms are cumulative since the start of the node, so a lost batch loses no
//! count.

use super::family_writer::{Bucket, FamilySink, FamilyType, FigureValue, Labels, Seconds};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::time::Duration;

/// A batch of metrics.
pub(super) struct OtlpBatch {
    metrics: Vec<Metric>,
    start_ns: u64,
    now_ns: u64,
}

impl OtlpBatch {
    /// Creates a batch at `now_us`. Counters count since `start_us`.
    pub(super) fn new(start_us: u64, now_us: u64) -> Self {
        let ns = |us: u64| us.saturating_mul(1_000);
        Self { metrics: Vec::new(), start_ns: ns(start_us), now_ns: ns(now_us.max(start_us)) }
    }

    /// Returns the OTLP message.
    pub(super) fn finish(
        self,
        resource: &opentelemetry_sdk::Resource,
    ) -> ExportMetricsServiceRequest {
        let attributes =
            resource.iter().map(|(key, value)| attribute(key.as_str(), &value.as_str()));
        let resource = Resource { attributes: attributes.collect(), ..Resource::default() };
        let scope = InstrumentationScope {
            name: "tollgate".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..InstrumentationScope::default()
        };
        let scope =
            ScopeMetrics { scope: Some(scope), metrics: self.metrics, ..ScopeMetrics::default() };
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(resource),
                scope_metrics: vec![scope],
                ..ResourceMetrics::default()
            }],
        }
    }
}

impl FamilySink for OtlpBatch {
    fn head(&mut self, kind: FamilyType, name: &'static str, help: &'static str) {
        let temporality = AggregationTemporality::Cumulative.into();
        let (suffix, data) = match kind {
            FamilyType::Counter => {
                let sum = Sum {
                    aggregation_temporality: temporality,
                    is_monotonic: true,
                    ..Sum::default()
                };
                ("_total", Data::Sum(sum))
            }
            FamilyType::Gauge => ("", Data::Gauge(Gauge::default())),
            FamilyType::Histogram => {
                let histogram =
                    Histogram { aggregation_temporality: temporality, ..Histogram::default() };
                ("", Data::Histogram(histogram))
            }
        };
        let unit = match name.rsplit('_').next() {
            Some("seconds") => "s",
            Some("bytes") => "By",
            _ => "",
        };
        self.metrics.push(Metric {
            name: format!("{name}{suffix}"),
            description: help.to_owned(),
            unit: unit.to_owned(),
            data: Some(data),
            ..Metric::default()
        });
    }

    fn sample(&mut self, labels: Labels<'_>, value: FigureValue) {
        let (start_ns, now_ns) = (self.start_ns, self.now_ns);
        let Some(data) = self.metrics.last_mut().and_then(|metric| metric.data.as_mut()) else {
            return;
        };
        let (points, start_ns) = match data {
            Data::Sum(sum) => (&mut sum.data_points, start_ns),
            Data::Gauge(gauge) => (&mut gauge.data_points, 0),
            _ => return,
        };
        points.push(NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start_ns,
            time_unix_nano: now_ns,
            value: Some(match value {
                FigureValue::Count(count) => {
                    number_data_point::Value::AsInt(i64::try_from(count).unwrap_or(i64::MAX))
                }
                FigureValue::Time(time) => number_data_point::Value::AsDouble(seconds(time)),
            }),
            ..NumberDataPoint::default()
        });
    }

    fn histogram(&mut self, labels: Labels<'_>, sum: Seconds, buckets: &[Bucket]) {
        let (start_ns, now_ns) = (self.start_ns, self.now_ns);
        let metric = self.metrics.last_mut();
        let Some(Data::Histogram(histogram)) = metric.and_then(|metric| metric.data.as_mut())
        else {
            return;
        };
        histogram.data_points.push(HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start_ns,
            time_unix_nano: now_ns,
            count: buckets.iter().map(|(_, count)| count).sum(),
            sum: Some(seconds(sum)),
            bucket_counts: buckets.iter().map(|(_, count)| *count).collect(),
            explicit_bounds: buckets.iter().filter_map(|(bound, _)| bound.map(seconds)).collect(),
            ..HistogramDataPoint::default()
        });
    }
}

fn seconds(time: Seconds) -> f64 {
    Duration::from_nanos(time.0).as_secs_f64()
}

fn attributes(labels: Labels<'_>) -> Vec<KeyValue> {
    labels.iter().map(|(name, text)| attribute(name, text)).collect()
}

fn attribute(name: &str, text: &str) -> KeyValue {
    let value = Some(Value::StringValue(text.to_owned()));
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value }), ..KeyValue::default() }
}
