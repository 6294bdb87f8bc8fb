//! Metric families as text, in the Prometheus text format or OpenMetrics.

use super::ExpositionFormat;
use std::fmt::{Display, Write};

/// Writes one family after another.
pub(super) struct FamilyWriter {
    format: ExpositionFormat,
    out: String,
}

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyType {
    /// Its name is given without the `_total` of its samples.
    Counter,
    Gauge,
    Histogram,
}

/// The labels of a sample.
type Labels<'a> = &'a [(&'a str, &'a str)];

impl FamilyWriter {
    pub(super) fn new(format: ExpositionFormat) -> Self {
        Self { format, out: String::with_capacity(16 * 1024) }
    }

    /// The whole page.
    pub(super) fn finish(mut self) -> String {
        if self.format == ExpositionFormat::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }

    /// A family of counters or gauges.
    pub(super) fn family<'l, const N: usize>(
        &mut self,
        kind: FamilyType,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ([(&'l str, &'l str); N], impl Display)>,
    ) {
        self.head(kind, name, help);
        let suffix = if kind == FamilyType::Counter { "_total" } else { "" };
        for (labels, value) in rows {
            self.sample(name, suffix, &labels, value);
        }
    }

    /// A family of histograms, each with its labels, its sum and its buckets. A bucket has its
    /// upper bound, and counts what is not in the bucket before it.
    pub(super) fn histograms<'l>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ((&'l str, &'l str), Seconds, Vec<(Option<Seconds>, u64)>)>,
    ) {
        self.head(FamilyType::Histogram, name, help);
        for (label, sum, buckets) in rows {
            self.sample(name, "_sum", &[label], sum);
            self.sample(
                name,
                "_count",
                &[label],
                buckets.iter().map(|(_, count)| count).sum::<u64>(),
            );
            let mut below = 0;
            for (bound, count) in buckets {
                below += count;
                let bound = bound.map_or("+Inf".to_owned(), |bound| bound.to_string());
                self.sample(name, "_bucket", &[label, ("le", &bound)], below);
            }
        }
    }

    fn head(&mut self, kind: FamilyType, name: &str, help: &str) {
        let (suffix, kind) = match (kind, self.format) {
            (FamilyType::Gauge, _) => ("", "gauge"),
            (FamilyType::Histogram, _) => ("", "histogram"),
            // OpenMetrics names a family of counters without the suffix of its samples.
            (FamilyType::Counter, ExpositionFormat::OpenMetrics) => ("", "counter"),
            (FamilyType::Counter, ExpositionFormat::Prometheus) => ("_total", "counter"),
        };
        for text in ["# HELP ", name, suffix, " ", help, "\n# TYPE ", name, suffix, " ", kind, "\n"]
        {
            self.out.push_str(text);
        }
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: Labels<'_>, value: impl Display) {
        self.out.extend([name, suffix]);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.out.extend([if at == 0 { "{" } else { "," }, label, "=\""]);
            for character in text.chars() {
                match character {
                    '\n' => self.out.push_str("\\n"),
                    '\\' | '"' => self.out.extend(['\\', character]),
                    _ => self.out.push(character),
                }
            }
            self.out.push('"');
        }
        let close = if labels.is_empty() { "" } else { "}" };
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.out, "{close} {value}");
    }
}

/// A time in nanoseconds, shown as exact decimal seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fraction = format!("{:09}", self.0 % 1_000_000_000);
        let fraction = fraction.trim_end_matches('0');
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        write!(f, "{}.{fraction}", self.0 / 1_000_000_000)
    }
}
