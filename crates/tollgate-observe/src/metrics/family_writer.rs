//! Metric families and their sinks: text, or OTLP messages.

use std::fmt::{self, Display};

/// Writes one family after another.
pub(super) struct FamilyWriter<'s>(pub(super) &'s mut dyn FamilySink);

/// Receives families. The samples of a family follow its head.
pub(super) trait FamilySink {
    fn head(&mut self, kind: FamilyType, name: &'static str, help: &'static str);
    fn sample(&mut self, labels: Labels<'_>, value: FigureValue);
    fn histogram(&mut self, labels: Labels<'_>, sum: Seconds, buckets: &[Bucket]);
}

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyType {
    /// A counter. Its family name has no `_total`; its samples do.
    Counter,
    Gauge,
    Histogram,
}

/// The labels of a sample.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A histogram bucket: its upper bound, and the count above the bound of the previous bucket.
pub(super) type Bucket = (Option<Seconds>, u64);

/// The value of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum FigureValue {
    Count(u64),
    Time(Seconds),
}

/// A time in nanoseconds, shown as exact decimal seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) u64);

impl FamilyWriter<'_> {
    /// Writes a family of counters or gauges.
    pub(super) fn family<'l, const N: usize>(
        &mut self,
        kind: FamilyType,
        name: &'static str,
        help: &'static str,
        rows: impl IntoIterator<Item = ([(&'l str, &'l str); N], impl Into<FigureValue>)>,
    ) {
        self.0.head(kind, name, help);
        for (labels, value) in rows {
            self.0.sample(&labels, value.into());
        }
    }

    /// Writes a family of histograms, each with a label, a sum and buckets.
    pub(super) fn histograms<'l>(
        &mut self,
        name: &'static str,
        help: &'static str,
        rows: impl IntoIterator<Item = ((&'l str, &'l str), Seconds, Vec<Bucket>)>,
    ) {
        self.0.head(FamilyType::Histogram, name, help);
        for (label, sum, buckets) in rows {
            self.0.histogram(&[label], sum, &buckets);
        }
    }
}

/// Returns the buckets with these bounds and the one above them. `count` is given their indexes.
pub(super) fn buckets(bounds_ns: &[u64], count: impl Fn(usize) -> u64) -> Vec<Bucket> {
    let bounds = bounds_ns.iter().map(|bound_ns| Some(Seconds(*bound_ns))).chain([None]);
    bounds.enumerate().map(|(bucket, bound)| (bound, count(bucket))).collect()
}

impl From<u64> for FigureValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<Seconds> for FigureValue {
    fn from(time: Seconds) -> Self {
        Self::Time(time)
    }
}

impl Display for FigureValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:09}", self.0 % 1_000_000_000);
        let fraction = fraction.trim_end_matches('0');
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        write!(f, "{}.{fraction}", self.0 / 1_000_000_000)
    }
}
