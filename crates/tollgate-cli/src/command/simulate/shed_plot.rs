//! The picture of a run with an upstream: offered and served requests by class, latency, and the
//! limit.

use super::shed_tally::{ClassTally, ShedTally, percentile};
use tollgate_picture::Canvas;
use tollgate_picture::axis::{count_ticks, format_duration, format_grouped, time_ticks};

const STEPS: u64 = 96;
const WIDTH: u64 = 9_600;
const LEFT: u64 = 720;
const RIGHT: u64 = 240;
const TOP: u64 = 900;
const HEIGHT: u64 = 1_300;
const BETWEEN: u64 = 700;
/// The colours of the classes, which also differ in lightness.
const COLOURS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#8c959f", "#d55e00"];
const RULES: &str = "\
.o{fill:none;stroke:#57606a;stroke-width:1.2}.f{fill-opacity:.3;stroke-width:1.2}.k{fill:none;stroke-width:1.6}\
@media(prefers-color-scheme:dark){.o{stroke:#9198a1}}";

/// The time axis, divided into steps.
struct TimeAxis {
    start_us: u64,
    step_us: u64,
}

/// A panel with its scale.
struct TimePanel {
    base: u64,
    most: u64,
}

pub(super) fn svg(title: &str, tally: &ShedTally) -> String {
    let axis = TimeAxis::of(tally);
    let panels = tally.classes.len() as u64 + 2;
    let height = TOP + panels * (HEIGHT + BETWEEN) - 200;
    let colours: Vec<String> = (0..)
        .zip(COLOURS)
        .map(|(n, colour)| {
            format!(".k{n}{{stroke:{colour}}}.f{n}{{fill:{colour};stroke:{colour}}}")
        })
        .collect();
    let rules = format!("{RULES}{}", colours.concat());
    let mut canvas = Canvas::new(title, LEFT, (WIDTH, height), &rules);
    let mut place = 0;
    let steps: Vec<_> = tally.classes.iter().map(|class| axis.steps(class)).collect();
    for (n, (class, steps)) in tally.classes.iter().zip(&steps).enumerate() {
        let most = steps.iter().map(|step| step.offered.max(step.served)).max().unwrap_or(0);
        let about = "offered (line) and served (area) a second";
        let panel = TimePanel::draw(&mut canvas, &mut place, (&class.name, about), most);
        panel.area(&mut canvas, n, steps.iter().map(|step| step.served));
        panel.line(&mut canvas, "o", steps.iter().map(|step| step.offered));
    }
    let most = steps.iter().flatten().map(|step| step.p99_ms).max().unwrap_or(0);
    let names: Vec<&str> = tally.classes.iter().map(|class| &*class.name).collect();
    let about = format!("p99 in milliseconds of what is served: {}", names.join(", "));
    let panel = TimePanel::draw(&mut canvas, &mut place, ("latency", &about), most);
    for (n, steps) in steps.iter().enumerate().rev() {
        panel.line(&mut canvas, &colour("k", n), steps.iter().map(|step| step.p99_ms));
    }
    let limits = axis.limits(tally);
    let most = limits.iter().copied().max().unwrap_or(0);
    let about = "requests in flight that the adaptive shedder allows";
    let panel = TimePanel::draw(&mut canvas, &mut place, ("limit", about), most);
    panel.line(&mut canvas, &colour("k", 0), limits.into_iter());
    for (at_us, label) in time_ticks(STEPS * axis.step_us) {
        let x = LEFT + at_us * (WIDTH - LEFT - RIGHT) / (STEPS * axis.step_us);
        canvas.text("m c", x, panel.base + 200, &label);
    }
    canvas.text("m", LEFT, 530, &format!("a point for each {}", format_duration(axis.step_us)));
    canvas.finish()
}

fn colour(kind: &str, class: usize) -> String {
    format!("{kind} {kind}{}", class % COLOURS.len())
}

/// The figures of a class in one step: requests per second, and latency in milliseconds.
struct ClassStep {
    offered: u64,
    served: u64,
    p99_ms: u64,
}

impl TimeAxis {
    fn of(tally: &ShedTally) -> Self {
        let arrived = || tally.classes.iter().flat_map(|class| class.arrived_us.iter().copied());
        let start_us = arrived().min().unwrap_or(0);
        let span_us = arrived().max().unwrap_or(0) - start_us;
        // Whole milliseconds, so that the length is easy to read.
        let step_us = (span_us / STEPS).next_multiple_of(1_000).max(1_000);
        Self { start_us, step_us }
    }

    fn place(&self, time_us: u64) -> usize {
        (time_us.saturating_sub(self.start_us) / self.step_us).min(STEPS - 1) as usize
    }

    fn steps(&self, class: &ClassTally) -> Vec<ClassStep> {
        let mut offered = vec![0; STEPS as usize];
        let mut took_us = vec![Vec::new(); STEPS as usize];
        class.arrived_us.iter().for_each(|&time_us| offered[self.place(time_us)] += 1);
        for &(time_us, took) in &class.served_us {
            took_us[self.place(time_us)].push(took);
        }
        let a_second = |count: u64| count * 1_000_000 / self.step_us;
        let step = |(offered, took_us): (u64, Vec<u64>)| ClassStep {
            offered: a_second(offered),
            served: a_second(took_us.len() as u64),
            p99_ms: percentile(took_us.into_iter(), 99) / 1_000,
        };
        offered.into_iter().zip(took_us).map(step).collect()
    }

    /// The last limit of each step.
    fn limits(&self, tally: &ShedTally) -> Vec<u64> {
        let mut limits = vec![None; STEPS as usize];
        tally.limits.iter().for_each(|&(at_us, limit)| limits[self.place(at_us)] = Some(limit));
        let known = limits.into_iter().scan(0, |last, limit| {
            *last = limit.map_or(*last, u64::from);
            Some(*last)
        });
        known.collect()
    }
}

impl TimePanel {
    fn draw(canvas: &mut Canvas, place: &mut u64, (name, about): (&str, &str), most: u64) -> Self {
        let top = TOP + *place * (HEIGHT + BETWEEN);
        *place += 1;
        let (most, step) = count_ticks(most);
        let panel = Self { base: top + HEIGHT, most };
        canvas.heading(LEFT, top - 120, name, about);
        for value in (0..=most).step_by(step as usize) {
            let y = panel.y(value);
            canvas.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            canvas.text("m e", LEFT - 80, y + 40, &format_grouped(value));
        }
        panel
    }

    fn y(&self, value: u64) -> u64 {
        self.base - value.min(self.most) * HEIGHT / self.most
    }

    fn points(&self, values: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let x = |step: u64| LEFT + (2 * step + 1) * (WIDTH - LEFT - RIGHT) / (2 * STEPS);
        (0..).zip(values).map(|(step, value)| (x(step), self.y(value))).collect()
    }

    fn line(&self, canvas: &mut Canvas, class: &str, values: impl Iterator<Item = u64>) {
        canvas.path(class, &self.points(values));
    }

    fn area(&self, canvas: &mut Canvas, class: usize, values: impl Iterator<Item = u64>) {
        let mut points = self.points(values);
        let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) else {
            return;
        };
        points.insert(0, (first.0, self.base));
        points.push((last.0, self.base));
        canvas.path(&colour("f", class), &points);
    }
}
