//! `--plot`: units over time, as bars.

use super::read::ReadUsage;
use super::totals::{Totals, UnitSums};
use tollgate_picture::{Canvas, axis};

const WIDTH: u64 = 9_600;
const LEFT: u64 = 900;
const RIGHT: u64 = 240;
const TOP: u64 = 720;
const HEIGHT: u64 = 2_400;
const PLOT_WIDTH: u64 = WIDTH - LEFT - RIGHT;
/// More bars would be too thin.
const BARS_MAX: u64 = 240;
/// The groups that the picture names.
const GROUPS_MAX: usize = 12;
const LINE: u64 = 200;

/// The picture of all intervals, and the figures of the groups that used most.
pub(super) fn svg(totals: &Totals, read: &ReadUsage) -> String {
    let groups = totals.groups();
    let shown = groups.len().min(GROUPS_MAX) as u64;
    let size = (WIDTH, TOP + HEIGHT + 900 + shown * LINE);
    let mut canvas = Canvas::new("Usage", LEFT, size, "");
    let bars = bars(totals);
    let (start_us, width_us) = (bars.start_us, bars.width_us);
    let span = format!(
        "units per {}, from {}; {} files of {} nodes",
        axis::format_duration(width_us),
        axis::format_utc(start_us),
        read.files,
        read.nodes
    );
    canvas.text("m", LEFT, 530, &span);
    draw(&mut canvas, &bars);
    let mut y = TOP + HEIGHT + 500;
    for (class, x, label) in [("a", LEFT, "used"), ("r", LEFT + 1_000, "refused")] {
        canvas.rect(class, (x, y - 105), (120, 120));
        canvas.text("", x + 180, y, label);
    }
    for (name, sums) in groups.iter().take(GROUPS_MAX) {
        y += LINE;
        let figures = format!(
            "{} used, {} refused",
            axis::format_grouped(sums.used()),
            axis::format_grouped(sums.refused)
        );
        canvas.heading(LEFT, y, name, &figures);
    }
    if groups.len() > GROUPS_MAX {
        let more = format!("and {} more", groups.len() - GROUPS_MAX);
        canvas.text("m", LEFT, y + LINE, &more);
    }
    canvas.finish()
}

struct Bars {
    start_us: u64,
    width_us: u64,
    sums: Vec<UnitSums>,
}

/// Intervals, several in one bar where there are many.
fn bars(totals: &Totals) -> Bars {
    let times = totals.times();
    let first_us = times.keys().next().copied().unwrap_or(0);
    let last_us = times.keys().next_back().copied().unwrap_or(0);
    let gaps = times.keys().zip(times.keys().skip(1)).map(|(a, b)| b - a);
    let every_us = gaps.min().unwrap_or(60_000_000).max(1);
    let intervals = (last_us - first_us) / every_us + 1;
    let width_us = every_us * intervals.div_ceil(BARS_MAX);
    let start_us = first_us / width_us * width_us;
    let mut sums = vec![UnitSums::default(); ((last_us - start_us) / width_us + 1) as usize];
    for (time_us, units) in times {
        let bar = &mut sums[((time_us - start_us) / width_us) as usize];
        bar.admitted = bar.admitted.saturating_add(units.admitted);
        bar.refused = bar.refused.saturating_add(units.refused);
        bar.given_back = bar.given_back.saturating_add(units.given_back);
    }
    Bars { start_us, width_us, sums }
}

fn draw(canvas: &mut Canvas, bars: &Bars) {
    let base = TOP + HEIGHT;
    let most = bars.sums.iter().map(|one| one.used().saturating_add(one.refused)).max();
    let (top, step) = axis::count_ticks(most.unwrap_or(0));
    let height =
        |units: u64| (u128::from(units) * u128::from(HEIGHT) / u128::from(top.max(1))) as u64;
    for mark in 0..=top / step {
        let y = base - height(mark * step);
        canvas.line("g", (LEFT, y), (WIDTH - RIGHT, y));
        canvas.text("m e", LEFT - 80, y + 40, &axis::format_grouped(mark * step));
    }
    let count = bars.sums.len() as u64;
    let x = |index: u64| LEFT + index * PLOT_WIDTH / count;
    for (index, sums) in bars.sums.iter().enumerate() {
        let index = index as u64;
        let (left, right) = (x(index), x(index + 1));
        let (used, refused) = (height(sums.used()), height(sums.refused));
        let shown = format!(
            "{}: {} used, {} refused, {} given back",
            axis::format_utc(bars.start_us + index * bars.width_us),
            axis::format_grouped(sums.used()),
            axis::format_grouped(sums.refused),
            axis::format_grouped(sums.given_back)
        );
        canvas.group(&shown, |canvas| {
            canvas.rect("a", (left, base - used), (right - left, used));
            canvas.rect("r", (left, base - used - refused), (right - left, refused));
            canvas.rect("h", (left, TOP), (right - left, HEIGHT));
        });
    }
    for (at_us, label) in axis::time_ticks(bars.width_us * count) {
        let span_us = u128::from(bars.width_us * count);
        let x = LEFT + (u128::from(at_us) * u128::from(PLOT_WIDTH) / span_us) as u64;
        canvas.text("m c", x.min(WIDTH - RIGHT), base + 200, &label);
    }
}
