//! Families of figures, written one after another.

use super::BUCKET_BOUNDS_NS;
use super::exposition::FrontTotals;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::time::Duration;

/// Writes families, each with its help and type.
pub(super) struct FamilyWriter<'a>(pub(super) DescriptorEncoder<'a>);

impl FamilyWriter<'_> {
    /// Counters with labels; `name` without `_total`.
    pub(super) fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ([(&'static str, impl AsRef<str>); N], u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, count) in rows {
            let labels = labels.each_ref().map(|(key, value)| (*key, value.as_ref()));
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    pub(super) fn counter<V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        value: V,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        family.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    pub(super) fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ([(&'static str, &'static str); N], u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in rows {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    pub(super) fn gauge<V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        value: V,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        family.encode_gauge(&value)
    }

    pub(super) fn histograms(
        &mut self,
        name: &str,
        help: &str,
        fronts: &[(&'static str, FrontTotals)],
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (front, of) in fronts {
            histogram(family.encode_family(&[("front", *front)])?, of)?;
        }
        Ok(())
    }
}

fn histogram(mut encoder: MetricEncoder<'_>, of: &FrontTotals) -> fmt::Result {
    let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    let bounds = BUCKET_BOUNDS_NS.iter().map(|&bound_ns| seconds(bound_ns)).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(of.buckets).collect();
    let count = of.buckets.iter().sum();
    encoder.encode_histogram::<NoLabelSet>(seconds(of.sum_ns), count, &buckets, None)
}

/// OpenMetrics as the older format has it: a family of counters is named as its samples are.
pub(super) fn to_prometheus_text(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 512);
    let mut help = None;
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("# HELP ") {
            // Its family's type, which decides on the name, is in the next line.
            help = text.split_once(' ');
            continue;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|of| of.split_once(' ')) {
            let suffix = if kind == "counter" { "_total" } else { "" };
            if let Some((_, help)) = help.take() {
                out.extend(["# HELP ", name, suffix, " ", help, "\n"]);
            }
            out.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
            continue;
        }
        out.extend([line, "\n"]);
    }
    out
}
