//! Families as text, in the Prometheus text format or OpenMetrics.

use super::ExpositionFormat;
use super::family_writer::{Bucket, FamilySink, FamilyType, FigureValue, Labels, Seconds};
use std::fmt::{Display, Write};

/// The page of `/metrics`.
pub(super) struct TextPage {
    format: ExpositionFormat,
    out: String,
    /// The name of the current family, and the suffix of its samples.
    family: (&'static str, &'static str),
}

impl TextPage {
    pub(super) fn new(format: ExpositionFormat) -> Self {
        Self { format, out: String::with_capacity(16 * 1024), family: ("", "") }
    }

    /// Returns the page.
    pub(super) fn finish(mut self) -> String {
        if self.format == ExpositionFormat::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, more: Labels<'_>, value: impl Display) {
        self.out.extend([self.family.0, suffix]);
        for (at, (label, text)) in labels.iter().chain(more).enumerate() {
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
        let close = if labels.is_empty() && more.is_empty() { "" } else { "}" };
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.out, "{close} {value}");
    }
}

impl FamilySink for TextPage {
    fn head(&mut self, kind: FamilyType, name: &'static str, help: &'static str) {
        self.family = (name, if kind == FamilyType::Counter { "_total" } else { "" });
        let (suffix, kind) = match (kind, self.format) {
            (FamilyType::Gauge, _) => ("", "gauge"),
            (FamilyType::Histogram, _) => ("", "histogram"),
            // OpenMetrics names a counter family without the suffix of its samples.
            (FamilyType::Counter, ExpositionFormat::OpenMetrics) => ("", "counter"),
            (FamilyType::Counter, ExpositionFormat::Prometheus) => ("_total", "counter"),
        };
        for text in ["# HELP ", name, suffix, " ", help, "\n# TYPE ", name, suffix, " ", kind, "\n"]
        {
            self.out.push_str(text);
        }
    }

    fn sample(&mut self, labels: Labels<'_>, value: FigureValue) {
        self.line(self.family.1, labels, &[], value);
    }

    fn histogram(&mut self, labels: Labels<'_>, sum: Seconds, buckets: &[Bucket]) {
        self.line("_sum", labels, &[], sum);
        self.line("_count", labels, &[], buckets.iter().map(|(_, count)| count).sum::<u64>());
        let mut below = 0;
        for (bound, count) in buckets {
            below += count;
            let bound = bound.map_or("+Inf".to_owned(), |bound| bound.to_string());
            self.line("_bucket", labels, &[("le", &bound)], below);
        }
    }
}
