//! Drawing panels: bars, marks and words.

use super::Panel;
use super::buckets::{Buckets, Count};
use super::key_rates::KeyRates;
use tollgate_picture::{Canvas, axis};

const WIDTH: u64 = 9_600;
const LEFT: u64 = 720;
const RIGHT: u64 = 240;
const TOP: u64 = 720;
const BOTTOM: u64 = 520;
const PLOT_WIDTH: u64 = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT: u64 = 900;
const PANEL_HEIGHT: u64 = PLOT_HEIGHT + 560;
/// Between two bars, and on either side of each.
const GAP: u64 = 4;

/// A picture being drawn, panel after panel.
pub(super) struct Picture {
    canvas: Canvas,
    width_us: u64,
    buckets: u64,
    marks: Vec<(u64, String)>,
    panels: u64,
    dashed: bool,
    /// Whether a limit has several keys.
    several: bool,
}

impl Picture {
    /// Starts a picture of so many panels.
    pub(super) fn new(title: &str, shown: &Buckets, panels: usize) -> Self {
        let (width_us, buckets) = (shown.width_us(), (shown.len() as u64).max(1));
        let height = TOP + panels as u64 * PANEL_HEIGHT + BOTTOM;
        let canvas = Canvas::new(title, LEFT, (WIDTH, height), "");
        let marks = axis::time_ticks(width_us * buckets);
        let mut picture =
            Self { canvas, width_us, buckets, marks, panels: 0, dashed: false, several: false };
        let span = format!(
            "requests per {}, from {}; a limit's panel shows its own answers",
            axis::format_duration(width_us),
            axis::format_utc(shown.start_us())
        );
        picture.canvas.text("m", LEFT, 530, &span);
        picture
    }

    /// Draws the next panel.
    pub(super) fn panel(
        &mut self,
        panel: &Panel,
        total: Count,
        counts: impl Iterator<Item = Count>,
        rates: &KeyRates,
    ) {
        let base = TOP + self.panels * PANEL_HEIGHT + 300 + PLOT_HEIGHT;
        self.panels += 1;
        self.heading(panel, total, rates.keys(), base - PLOT_HEIGHT - 110);
        let counts: Vec<Count> = counts.collect();
        let max = counts.iter().map(|count| count.total()).max().unwrap_or(0);
        let (top, step) = axis::count_ticks(max);
        self.grid(base, top, step);
        for (index, &count) in counts.iter().enumerate() {
            if count.total() > 0 {
                self.bar(index as u64, count, base, top);
            }
        }
        self.rate(rates, base, top);
    }

    /// Adds the time axis and the legend. `left_out` limits were not drawn, `idle` ones had no
    /// requests.
    pub(super) fn finish(mut self, left_out: usize, idle: usize) -> String {
        let base = TOP + self.panels * PANEL_HEIGHT;
        for (at_us, label) in std::mem::take(&mut self.marks) {
            let x = self.x(at_us);
            let class = if x + 200 > WIDTH { "m e" } else { "m c" };
            self.canvas.text(class, x.min(WIDTH - 60), base - 70, &label);
        }
        let y = base + 250;
        for (class, x, label) in
            [("a", LEFT, "admitted"), ("r", LEFT + 1_000, "refused (in shadow mode: would be)")]
        {
            self.canvas.rect(class, (x, y - 105), (120, 120));
            self.canvas.text("", x + 180, y, label);
        }
        if self.dashed {
            let x = LEFT + 3_700;
            self.canvas.line("l", (x, y - 45), (x + 240, y - 45));
            let label = if self.several {
                "the limit's rate, for all its keys together"
            } else {
                "the limit's rate"
            };
            self.canvas.text("", x + 300, y, label);
        }
        let mut notes = Vec::new();
        if left_out > 0 {
            notes.push(format!("not drawn, since refused less: {left_out}"));
        }
        if idle > 0 {
            notes.push(format!("limits without requests: {idle}"));
        }
        self.canvas.text("m e", WIDTH - RIGHT, y, &notes.join("; "));
        self.canvas.finish()
    }

    fn heading(&mut self, panel: &Panel, total: Count, keys: usize, y: u64) {
        let description = match keys {
            0 | 1 => panel.description.clone(),
            keys => format!("{}: {} keys", panel.description, axis::format_grouped(keys as u64)),
        };
        self.canvas.heading(LEFT, y, &panel.name, &description);
        let summary = format!(
            "{} requests: {} admitted, {} refused",
            axis::format_grouped(total.total()),
            axis::format_grouped(total.admitted),
            axis::format_grouped(total.refused)
        );
        self.canvas.text("m e", WIDTH - RIGHT, y, &summary);
    }

    fn grid(&mut self, base: u64, top: u64, step: u64) {
        for mark in 0..=top / step {
            let y = base - height(mark * step, top);
            self.canvas.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            self.canvas.text("m e", LEFT - 80, y + 40, &axis::format_grouped(mark * step));
        }
        for (at_us, _) in self.marks.clone() {
            let x = self.x(at_us);
            self.canvas.line("g", (x, base - PLOT_HEIGHT), (x, base + 50));
        }
    }

    /// One bucket: admissions at the bottom, refusals on top of them, and the figures as a tooltip.
    fn bar(&mut self, index: u64, count: Count, base: u64, top: u64) {
        let left = self.x(index * self.width_us);
        let right = self.x((index + 1) * self.width_us);
        let gap = if right - left > 8 * GAP { GAP } else { 0 };
        let width = right - left - 2 * gap;
        let admitted = height(count.admitted, top);
        let total = height(count.total(), top);
        let shown = format!(
            "{} to {}: {} requests, {} admitted, {} refused",
            axis::format_offset(index * self.width_us),
            axis::format_offset((index + 1) * self.width_us),
            axis::format_grouped(count.total()),
            axis::format_grouped(count.admitted),
            axis::format_grouped(count.refused)
        );
        self.canvas.group(&shown, |canvas| {
            if admitted > 0 {
                canvas.rect("a", (left + gap, base - admitted), (width, admitted));
            }
            if total > admitted {
                canvas.rect("r", (left + gap, base - total), (width, total - admitted));
            }
            canvas.rect("h", (left, base - PLOT_HEIGHT), (right - left, PLOT_HEIGHT));
        });
    }

    /// The sustained rate of all keys seen, if the scale reaches it. The bars count all keys too.
    fn rate(&mut self, rates: &KeyRates, base: u64, top: u64) {
        let Some(total) = rates.total(self.width_us, PLOT_HEIGHT) else { return };
        let rise = total / u128::from(top);
        if (1..=u128::from(PLOT_HEIGHT)).contains(&rise) {
            let y = base - rise as u64;
            self.dashed = true;
            self.several |= rates.keys() > 1;
            self.canvas.line("l", (LEFT, y), (WIDTH - RIGHT, y));
        } else if rise > 0
            && let Ok(total) = u64::try_from(total / u128::from(PLOT_HEIGHT))
        {
            let (keys, per) = (rates.keys(), axis::format_duration(self.width_us));
            let total = axis::format_grouped(total);
            let whose = if keys > 1 { " for its keys together" } else { "" };
            let note = format!("rate above the scale: {total} per {per}{whose}");
            self.canvas.text("m", LEFT + 60, base - PLOT_HEIGHT + 130, &note);
        }
    }

    /// Where an instant lies, counted from the axis's start.
    fn x(&self, at_us: u64) -> u64 {
        let span_us = u128::from(self.width_us * self.buckets);
        LEFT + (u128::from(at_us) * u128::from(PLOT_WIDTH) / span_us) as u64
    }
}

/// How high a count stands on an axis that ends at `top`.
fn height(count: u64, top: u64) -> u64 {
    (u128::from(count) * u128::from(PLOT_HEIGHT) / u128::from(top.max(1))) as u64
}
