//! Drawing, by hand: bars, marks and words, in tenths of a pixel so that every coordinate is a whole number.
//!
//! Blue and orange are told apart by everybody, on white and on black, and by their lightness alone; the picture
//! brings its own background, in the reader's colour scheme, so that it stands on any page.

use super::Panel;
use super::axis;
use super::buckets::{Buckets, Count};
use std::fmt::Write;

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

const STYLE: &str = "\
svg{color-scheme:light dark;font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
text{fill:#24292f}.b{fill:#fff}.g{stroke:#d0d7de}.t{font-size:17px;font-weight:600}.n{font-weight:600}.m{fill:#57606a}\
.e{text-anchor:end}.c{text-anchor:middle}.a{fill:#0072b2}.r{fill:#e69f00}.l{stroke:#24292f;stroke-width:1.2;stroke-dasharray:4 3}\
.h{fill:transparent}.h:hover{fill:#8c959f;fill-opacity:.25}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#0d1117}.g{stroke:#30363d}.m{fill:#9198a1}.a{fill:#4aa8e0}\
.l{stroke:#e6edf3}}";

/// A picture being drawn, panel after panel.
pub(super) struct Picture {
    out: String,
    width_us: u64,
    buckets: u64,
    marks: Vec<(u64, String)>,
    panels: u64,
    dashed: bool,
}

impl Picture {
    /// Starts a picture of so many panels.
    pub(super) fn new(title: &str, shown: &Buckets, panels: usize) -> Self {
        let (width_us, buckets) = (shown.width_us(), (shown.len() as u64).max(1));
        let height = TOP + panels as u64 * PANEL_HEIGHT + BOTTOM;
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\" aria-labelledby=\"title\">\n<title id=\"title\">{}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"b\" width=\"100%\" height=\"100%\"/>\n",
            escaped(title),
            w = px(WIDTH),
            h = px(height),
        );
        let marks = axis::time(width_us * buckets);
        let mut picture = Self { out, width_us, buckets, marks, panels: 0, dashed: false };
        picture.text("t", LEFT, 320, title);
        let span = format!(
            "requests per {}, from {}; a limit's panel shows its own answers",
            axis::duration(width_us),
            axis::utc(shown.start_us())
        );
        picture.text("m", LEFT, 530, &span);
        picture
    }

    /// Draws the next panel.
    pub(super) fn panel(
        &mut self,
        panel: &Panel,
        total: Count,
        counts: impl Iterator<Item = Count>,
    ) {
        let base = TOP + self.panels * PANEL_HEIGHT + 300 + PLOT_HEIGHT;
        self.panels += 1;
        self.heading(panel, total, base - PLOT_HEIGHT - 110);
        let counts: Vec<Count> = counts.collect();
        let max = counts.iter().map(|count| count.total()).max().unwrap_or(0);
        let (top, step) = axis::count(max);
        self.grid(base, top, step);
        for (index, &count) in counts.iter().enumerate() {
            if count.total() > 0 {
                self.bar(index as u64, count, base, top);
            }
        }
        self.rate(panel, base, top);
    }

    /// Adds the time axis and the legend. `left_out` limits were not drawn, `idle` ones had no requests.
    pub(super) fn finish(mut self, left_out: usize, idle: usize) -> String {
        let base = TOP + self.panels * PANEL_HEIGHT;
        for (at_us, label) in std::mem::take(&mut self.marks) {
            let x = self.x(at_us);
            let class = if x + 200 > WIDTH { "m e" } else { "m c" };
            self.text(class, x.min(WIDTH - 60), base - 70, &label);
        }
        let y = base + 250;
        for (class, x, label) in
            [("a", LEFT, "admitted"), ("r", LEFT + 1_000, "refused (in shadow mode: would be)")]
        {
            self.rect(class, (x, y - 105), (120, 120));
            self.text("", x + 180, y, label);
        }
        if self.dashed {
            let x = LEFT + 3_700;
            self.line("l", (x, y - 45), (x + 240, y - 45));
            self.text("", x + 300, y, "the limit's rate");
        }
        let mut notes = Vec::new();
        if left_out > 0 {
            notes.push(format!("not drawn, since refused less: {left_out}"));
        }
        if idle > 0 {
            notes.push(format!("limits without requests: {idle}"));
        }
        self.text("m e", WIDTH - RIGHT, y, &notes.join("; "));
        self.out.push_str("</svg>\n");
        self.out
    }

    fn heading(&mut self, panel: &Panel, total: Count, y: u64) {
        let _ = writeln!(
            self.out,
            "<text x=\"{}\" y=\"{}\"><tspan class=\"n\">{}</tspan><tspan class=\"m\" dx=\"8\">{}</tspan></text>",
            px(LEFT),
            px(y),
            escaped(&panel.name),
            escaped(&panel.description)
        );
        let summary = format!(
            "{} requests: {} admitted, {} refused",
            axis::grouped(total.total()),
            axis::grouped(total.admitted),
            axis::grouped(total.refused)
        );
        self.text("m e", WIDTH - RIGHT, y, &summary);
    }

    fn grid(&mut self, base: u64, top: u64, step: u64) {
        for mark in 0..=top / step {
            let y = base - height(mark * step, top);
            self.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            self.text("m e", LEFT - 80, y + 40, &axis::grouped(mark * step));
        }
        for (at_us, _) in self.marks.clone() {
            let x = self.x(at_us);
            self.line("g", (x, base - PLOT_HEIGHT), (x, base + 50));
        }
    }

    /// One bucket: admissions at the bottom, refusals on top of them, and the figures for whoever points at it.
    fn bar(&mut self, index: u64, count: Count, base: u64, top: u64) {
        let left = self.x(index * self.width_us);
        let right = self.x((index + 1) * self.width_us);
        let gap = if right - left > 8 * GAP { GAP } else { 0 };
        let width = right - left - 2 * gap;
        let admitted = height(count.admitted, top);
        let total = height(count.total(), top);
        let _ = write!(
            self.out,
            "<g><title>{} to {}: {} requests, {} admitted, {} refused</title>",
            axis::offset(index * self.width_us),
            axis::offset((index + 1) * self.width_us),
            axis::grouped(count.total()),
            axis::grouped(count.admitted),
            axis::grouped(count.refused)
        );
        if admitted > 0 {
            self.rect("a", (left + gap, base - admitted), (width, admitted));
        }
        if total > admitted {
            self.rect("r", (left + gap, base - total), (width, total - admitted));
        }
        self.rect("h", (left, base - PLOT_HEIGHT), (right - left, PLOT_HEIGHT));
        self.out.push_str("</g>\n");
    }

    /// The sustained rate, where it is on the scale.
    fn rate(&mut self, panel: &Panel, base: u64, top: u64) {
        let Some((count, period_us)) = panel.rate else { return };
        let rise = u128::from(count) * u128::from(self.width_us) * u128::from(PLOT_HEIGHT)
            / (u128::from(period_us.max(1)) * u128::from(top));
        if (1..=u128::from(PLOT_HEIGHT)).contains(&rise) {
            let y = base - rise as u64;
            self.dashed = true;
            self.line("l", (LEFT, y), (WIDTH - RIGHT, y));
        }
    }

    /// Where an instant lies, counted from the axis's start.
    fn x(&self, at_us: u64) -> u64 {
        let span_us = u128::from(self.width_us * self.buckets);
        LEFT + (u128::from(at_us) * u128::from(PLOT_WIDTH) / span_us) as u64
    }

    fn text(&mut self, class: &str, x: u64, y: u64, text: &str) {
        if !text.is_empty() {
            let (x, y, text) = (px(x), px(y), escaped(text));
            let _ = writeln!(self.out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
    }

    fn rect(&mut self, class: &str, (x, y): (u64, u64), (width, height): (u64, u64)) {
        let (x, y, w, h) = (px(x), px(y), px(width), px(height));
        let _ = write!(
            self.out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>"
        );
    }

    fn line(&mut self, class: &str, from: (u64, u64), to: (u64, u64)) {
        let (x1, y1, x2, y2) = (px(from.0), px(from.1), px(to.0), px(to.1));
        let _ = writeln!(self.out, "<path class=\"{class}\" d=\"M{x1} {y1}L{x2} {y2}\"/>");
    }
}

/// How high a count stands on an axis that ends at `top`.
fn height(count: u64, top: u64) -> u64 {
    (u128::from(count) * u128::from(PLOT_HEIGHT) / u128::from(top.max(1))) as u64
}

/// Tenths of a pixel, as written.
fn px(tenths: u64) -> String {
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Control characters have no place in XML, not even escaped.
            char if char.is_control() => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
    out
}
