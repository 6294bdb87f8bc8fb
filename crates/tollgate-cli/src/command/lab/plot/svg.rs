//! Draws panels: bars, marks and text.

use super::Panel;
use super::buckets::{Buckets, Count};
use super::key_rates::KeyRates;
use tollgate_picture::{BarPanel, Canvas, axis};

const WIDTH: u64 = 9_600;
const LEFT: u64 = 720;
const RIGHT: u64 = 240;
const TOP: u64 = 720;
const BOTTOM: u64 = 520;
const PLOT_WIDTH: u64 = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT: u64 = 900;
const PANEL_HEIGHT: u64 = PLOT_HEIGHT + 560;

/// An outline makes text readable on bars.
const OUTLINE: &str = ".o{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}\
@media(prefers-color-scheme:dark){.o{stroke:#0d1117}}";

/// The meaning of the colours.
pub(crate) struct Legend {
    /// The labels of the lower and the upper part of a bar.
    pub(crate) labels: [&'static str; 2],
    /// The distance between the two labels.
    pub(crate) apart: u64,
}

/// The numbers of panels that are not drawn.
#[derive(Clone, Copy, Default)]
pub(crate) struct LeftOut {
    /// Panels left out because others had more refusals.
    pub(crate) minor: usize,
    /// Panels left out because they had no requests.
    pub(crate) idle: usize,
}

/// A picture in progress, drawn panel by panel.
pub(crate) struct Picture {
    canvas: Canvas,
    width_us: u64,
    buckets: u64,
    panels: u64,
    dashed: bool,
    /// Whether any limit has several keys.
    several: bool,
}

impl Picture {
    /// Starts a picture with this number of panels. `about` follows the text about the bars' width
    /// and start.
    pub(crate) fn new(title: &str, about: &str, shown: &Buckets, panels: usize) -> Self {
        let (width_us, buckets) = (shown.width_us(), (shown.len() as u64).max(1));
        let height = TOP + panels as u64 * PANEL_HEIGHT + BOTTOM;
        let canvas = Canvas::new(title, LEFT, (WIDTH, height), OUTLINE);
        let mut picture =
            Self { canvas, width_us, buckets, panels: 0, dashed: false, several: false };
        let span = format!(
            "requests per {}, from {}; {about}",
            axis::format_duration(width_us),
            axis::format_utc(shown.start_us())
        );
        picture.canvas.text("m", LEFT, 530, &span);
        picture
    }

    /// Draws the next panel.
    pub(crate) fn panel(
        &mut self,
        panel: &Panel,
        counts: impl Iterator<Item = Count>,
        rates: &KeyRates,
    ) {
        let base = TOP + self.panels * PANEL_HEIGHT + 300 + PLOT_HEIGHT;
        self.panels += 1;
        let counts: Vec<Count> = counts.collect();
        let total = counts.iter().copied().fold(Count::default(), Count::plus);
        self.heading(panel, total, rates.keys(), base - PLOT_HEIGHT - 110);
        let highest = counts.iter().map(|count| count.total()).max().unwrap_or(0);
        // The scale extends to the rate if the rate is at most twice the highest bar.
        let rate = rates.total(self.width_us, 1).and_then(|rate| u64::try_from(rate).ok());
        let rate = rate.filter(|rate| *rate <= highest.saturating_mul(2));
        let bars = self.bars(base, highest.max(rate.unwrap_or(0)));
        bars.count_grid(&mut self.canvas);
        for (x, _) in bars.time_marks() {
            self.canvas.line("g", (x, base - PLOT_HEIGHT), (x, base + 50));
        }
        for (index, &count) in (0..).zip(&counts) {
            if count.total() > 0 {
                self.bar(&bars, panel, index, count);
            }
        }
        self.rate(rates, base, bars.top());
    }

    /// Adds the time axis and the legend.
    pub(crate) fn finish(mut self, legend: &Legend, left_out: LeftOut) -> String {
        let base = TOP + self.panels * PANEL_HEIGHT;
        for (x, label) in self.bars(base, 0).time_marks() {
            let class = if x + 200 > WIDTH { "m e" } else { "m c" };
            self.canvas.text(class, x.min(WIDTH - 60), base - 70, &label);
        }
        let y = base + 250;
        let places = [("a", LEFT), ("r", LEFT + legend.apart)];
        for ((class, x), label) in places.into_iter().zip(legend.labels) {
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
        if left_out.minor > 0 {
            notes.push(format!("not drawn, since refused less: {}", left_out.minor));
        }
        if left_out.idle > 0 {
            notes.push(format!("limits without requests: {}", left_out.idle));
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
        let all = axis::format_count(total.total(), "request");
        let summary = format!("{all}: {}", panel.figures(total));
        self.canvas.text("m e", WIDTH - RIGHT, y, &summary);
    }

    /// Returns the bars of a panel whose bottom is at `base`.
    fn bars(&self, base: u64, max: u64) -> BarPanel {
        let span_us = self.width_us * self.buckets;
        BarPanel::new((LEFT, PLOT_WIDTH), (base, PLOT_HEIGHT), span_us, max)
    }

    /// Draws one bucket: admissions below, refusals above, and a tooltip with the counts.
    fn bar(&mut self, bars: &BarPanel, panel: &Panel, index: u64, count: Count) {
        let (from_us, to_us) = (index * self.width_us, (index + 1) * self.width_us);
        let shown = format!(
            "{} to {}: {}, {}",
            axis::format_offset(from_us),
            axis::format_offset(to_us),
            axis::format_count(count.total(), "request"),
            panel.figures(count)
        );
        let counts = [("a", count.admitted), ("r", count.refused)];
        bars.bar(&mut self.canvas, (from_us, to_us), counts, &shown);
    }

    /// Draws the sustained rate of all keys seen, if it is within the scale. Bars count all keys
    /// too.
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
            self.canvas.text("m o", LEFT + 60, base - PLOT_HEIGHT + 130, &note);
        }
    }
}
