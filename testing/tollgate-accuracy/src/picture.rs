//! The picture: the admissions of a client that knows the windows, for each algorithm.

use crate::contestant::{Contestant, Limit};
use crate::page::{percent, title};
use crate::tally::{Race, Tally};
use crate::traffic::{START_US, attack_times};
use tollgate_picture::{Canvas, axis};

const WIDTH: u64 = 9_600;
const LEFT: u64 = 720;
const RIGHT: u64 = 240;
const TOP: u64 = 720;
const PLOT_WIDTH: u64 = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT: u64 = 700;
const PANEL_HEIGHT: u64 = PLOT_HEIGHT + 480;
/// The number of attacks drawn, of three windows each.
const ATTACKS: u64 = 2;
/// The number of points of a line.
const POINTS: u64 = 720;
/// Style rules: lines have neither dashes nor fill.
const RULES: &str = ".s{fill:none;stroke:#0072b2;stroke-width:1.6}\
.f{fill:#0072b2;fill-opacity:.18;stroke:none}.x{fill:#e69f00;fill-opacity:.65;stroke:none}";

pub(crate) fn draw(contestants: &[Contestant], tallies: &[Tally], limit: Limit) -> String {
    let height = TOP + contestants.len() as u64 * PANEL_HEIGHT + 350;
    let mut canvas =
        Canvas::new("A client that knows when windows end", LEFT, (WIDTH, height), RULES);
    let window = axis::format_duration(limit.window_us);
    let what = format!(
        "admissions in the last {window}, over {} attacks; the limit is {}. Right: what all sources got",
        ATTACKS, limit.count
    );
    canvas.text("m", LEFT, 530, &what);
    let counts = counts(contestants, limit);
    let (top, step) = axis::count_ticks(2 * limit.count);
    let span_us = ATTACKS * 3 * limit.window_us;
    for (place, (contestant, tally)) in contestants.iter().zip(tallies).enumerate() {
        let base = TOP + place as u64 * PANEL_HEIGHT + 300 + PLOT_HEIGHT;
        canvas.heading(LEFT, base - PLOT_HEIGHT - 110, contestant.name, &contestant.numbers);
        let wrong = format!(
            "{} of all requests were admitted above the limit; most in any window: {}",
            percent(tally.above, tally.requests),
            tally.most,
        );
        canvas.text("m e", WIDTH - RIGHT, base - PLOT_HEIGHT - 110, &wrong);
        for mark in 0..=top / step {
            let y = base - mark * step * PLOT_HEIGHT / top;
            canvas.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            canvas.text("m e", LEFT - 80, y + 40, &(mark * step).to_string());
        }
        let points: Vec<(u64, u64)> = counts
            .iter()
            .enumerate()
            .map(|(at, counts)| (LEFT + at as u64 * PLOT_WIDTH / POINTS, counts[place]))
            .collect();
        let y = |count: u64| base - count * PLOT_HEIGHT / top;
        let title = title(contestant);
        canvas.group(&format!("{title}: at most {} in any window", tally.most), |canvas| {
            let line: Vec<(u64, u64)> = points.iter().map(|(x, count)| (*x, y(*count))).collect();
            canvas.path("f", &closed(&line, base));
            let above: Vec<(u64, u64)> =
                points.iter().map(|(x, count)| (*x, y((*count).max(limit.count)))).collect();
            canvas.path("x", &closed(&above, y(limit.count)));
            canvas.path("s", &line);
            canvas.line("l", (LEFT, y(limit.count)), (WIDTH - RIGHT, y(limit.count)));
        });
    }
    let base = TOP + contestants.len() as u64 * PANEL_HEIGHT;
    for (at_us, label) in axis::time_ticks(span_us) {
        let x = LEFT + (u128::from(at_us) * u128::from(PLOT_WIDTH) / u128::from(span_us)) as u64;
        canvas.text(if x + 200 > WIDTH { "m e" } else { "m c" }, x, base, &label);
    }
    canvas.rect("x", (LEFT, base + 115), (120, 120));
    canvas.text("", LEFT + 180, base + 220, "above the limit");
    canvas.finish()
}

/// Extends a line down to `base` on both sides, for filling.
fn closed(line: &[(u64, u64)], base: u64) -> Vec<(u64, u64)> {
    let (first, last) = (line.first().map_or(0, |point| point.0), line.last().map_or(0, |p| p.0));
    std::iter::once((first, base)).chain(line.iter().copied()).chain([(last, base)]).collect()
}

/// The admissions of each algorithm in the last window, at evenly spaced instants.
fn counts(contestants: &[Contestant], limit: Limit) -> Vec<Vec<u64>> {
    let mut race = Race::new(contestants, limit);
    let mut times = attack_times(limit).peekable();
    let span_us = ATTACKS * 3 * limit.window_us;
    (0..=POINTS)
        .map(|point| {
            let now_us = START_US + point * span_us / POINTS;
            while let Some(time_us) = times.next_if(|time_us| *time_us <= now_us) {
                race.step(time_us);
            }
            race.in_window(now_us)
        })
        .collect()
}
