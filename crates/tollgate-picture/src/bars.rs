//! Bars over time, on an axis of counts.

use crate::axis::{count_ticks, format_grouped, time_ticks};
use crate::canvas::Canvas;

/// The gap between two bars, half of it on either side of each.
const GAP: u64 = 4;

/// The part of a picture with bars, and its scale.
#[derive(Clone, Copy, Debug)]
pub struct BarPanel {
    /// The left end and the length of the time axis.
    time_axis: (u64, u64),
    /// The position of a count of zero, and the height of the axis of counts.
    count_axis: (u64, u64),
    span_us: u64,
    /// The count at the top of the axis, and the step between its marks.
    top: u64,
    step: u64,
}

impl BarPanel {
    /// Creates a panel. `time_axis` is the left end and the length of the time axis; `count_axis`
    /// is the bottom and the height of the axis of counts. The bars cover `span_us` and reach up to
    /// `max`.
    pub fn new(time_axis: (u64, u64), count_axis: (u64, u64), span_us: u64, max: u64) -> Self {
        let (top, step) = count_ticks(max);
        Self { time_axis, count_axis, span_us: span_us.max(1), top, step }
    }

    /// The count at the top of the axis.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The horizontal position of an instant, measured from the start of the bars.
    pub fn x(&self, at_us: u64) -> u64 {
        let (left, width) = self.time_axis;
        left + (u128::from(at_us) * u128::from(width) / u128::from(self.span_us)) as u64
    }

    /// The height of a count.
    fn rise(&self, count: u64) -> u64 {
        let height = self.count_axis.1;
        (u128::from(count) * u128::from(height) / u128::from(self.top.max(1))) as u64
    }

    /// Draws the marks of the counts.
    pub fn count_grid(&self, canvas: &mut Canvas) {
        let ((left, width), base) = (self.time_axis, self.count_axis.0);
        for mark in 0..=self.top / self.step {
            let y = base - self.rise(mark * self.step);
            canvas.line("g", (left, y), (left + width, y));
            canvas.text("m e", left - 80, y + 40, &format_grouped(mark * self.step));
        }
    }

    /// The marks of the time axis: their positions and labels.
    pub fn time_marks(&self) -> impl Iterator<Item = (u64, String)> {
        time_ticks(self.span_us).into_iter().map(|(at_us, label)| (self.x(at_us), label))
    }

    /// Draws one bar: counts stacked on each other, each with its class, and the tooltip `shown`.
    pub fn bar(
        &self,
        canvas: &mut Canvas,
        (from_us, to_us): (u64, u64),
        counts: [(&str, u64); 2],
        shown: &str,
    ) {
        let (left, right) = (self.x(from_us), self.x(to_us));
        let gap = if right - left > 8 * GAP { GAP } else { 0 };
        let (base, height) = self.count_axis;
        canvas.group(shown, |canvas| {
            let (mut sum, mut below) = (0_u64, 0);
            for (class, count) in counts {
                sum = sum.saturating_add(count);
                let above = self.rise(sum);
                if above > below {
                    let size = (right - left - 2 * gap, above - below);
                    canvas.rect(class, (left + gap, base - above), size);
                }
                below = above;
            }
            canvas.rect("h", (left, base - height), (right - left, height));
        });
    }
}
