//! `--plot`: units over time, as bars.

use super::read::ReadUsage;
use super::totals::{Totals, UnitSums};
use tollgate_picture::{BarPanel, Canvas, axis};

const WIDTH: u64 = 9_600;
const LEFT: u64 = 900;
const RIGHT: u64 = 240;
const TOP: u64 = 720;
const HEIGHT: u64 = 2_400;
const PLOT_WIDTH: u64 = WIDTH - LEFT - RIGHT;
/// The most bars; more would be too thin.
const BARS_MAX: u64 = 240;
/// The most groups that the picture names.
const GROUPS_MAX: usize = 12;
const LINE: u64 = 200;

/// Draws all intervals, and the figures of the groups that used most.
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

/// Returns the bars; if there are many intervals, each bar has several.
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
        sums[((time_us - start_us) / width_us) as usize].add(*units);
    }
    Bars { start_us, width_us, sums }
}

fn draw(canvas: &mut Canvas, bars: &Bars) {
    let base = TOP + HEIGHT;
    let most = bars.sums.iter().map(|one| one.used().saturating_add(one.refused)).max();
    let span_us = bars.width_us * bars.sums.len() as u64;
    let most = most.unwrap_or(0);
    let panel = BarPanel::new((LEFT, PLOT_WIDTH), (base, HEIGHT), span_us, most);
    panel.count_grid(canvas);
    for (index, sums) in (0..).zip(&bars.sums) {
        let (from_us, to_us) = (index * bars.width_us, (index + 1) * bars.width_us);
        let shown = format!(
            "{}: {} used, {} refused, {} given back",
            axis::format_utc(bars.start_us + from_us),
            axis::format_grouped(sums.used()),
            axis::format_grouped(sums.refused),
            axis::format_grouped(sums.given_back)
        );
        let counts = [("a", sums.used()), ("r", sums.refused)];
        panel.bar(canvas, (from_us, to_us), counts, &shown);
    }
    for (x, label) in panel.time_marks() {
        canvas.text("m c", x.min(WIDTH - RIGHT), base + 200, &label);
    }
}
