//! The picture of `docs/shedding.md`: an overload, by class, from its begin to after its end.
//! To draw it: `TOLLGATE_WRITE=1 cargo test --package tollgate --lib the_picture_is`.

use super::simulation::{Report, Scenario};
use std::path::PathBuf;
use std::{env, fs};
use tollgate_picture::Canvas;
use tollgate_picture::axis::format_grouped;

const SECONDS: u64 = 24;
const OVERLOAD: (u64, u64) = (6, 16);
const STEP_US: u64 = 250_000;
const STEPS: u64 = SECONDS * 1_000_000 / STEP_US;

const WIDTH: u64 = 9_600;
const LEFT: u64 = 720;
const RIGHT: u64 = 240;
const TOP: u64 = 1_100;
const HEIGHT: u64 = 1_300;
const BETWEEN: u64 = 700;
const RULES: &str = "\
.o{fill:none;stroke:#57606a;stroke-width:1.2}.f{fill:#0072b2;fill-opacity:.3;stroke:#0072b2;stroke-width:1.2}\
.k{fill:none;stroke:#0072b2;stroke-width:1.6}.q{fill:none;stroke:#e69f00;stroke-width:1.6}.w{fill:#8c959f;fill-opacity:.14}\
@media(prefers-color-scheme:dark){.o{stroke:#9198a1}.f{fill:#4aa8e0;stroke:#4aa8e0}.k{stroke:#4aa8e0}}";

fn report() -> Report {
    let requests_per_s = vec![(0, 400), (OVERLOAD.0, 2_400), (OVERLOAD.1, 400)];
    Scenario { requests_per_s, seconds: SECONDS, warm_s: 0, ..Scenario::load(50) }.run()
}

fn x(step: u64) -> u64 {
    LEFT + step * (WIDTH - LEFT - RIGHT) / STEPS
}

/// A panel with its scale.
struct Panel {
    base: u64,
    most: u64,
}

impl Panel {
    fn draw(canvas: &mut Canvas, index: u64, (name, said): (&str, &str), most: u64) -> Self {
        let top = TOP + index * (HEIGHT + BETWEEN);
        let panel = Self { base: top + HEIGHT, most };
        let (from, to) = (x(OVERLOAD.0 * 4), x(OVERLOAD.1 * 4));
        canvas.rect("w", (from, top), (to - from, HEIGHT));
        canvas.heading(LEFT, top - 120, name, said);
        for part in 0..=4 {
            let y = panel.y(most * part / 4);
            canvas.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            canvas.text("m e", LEFT - 80, y + 40, &format_grouped(most * part / 4));
        }
        panel
    }

    fn y(&self, value: u64) -> u64 {
        self.base - value.min(self.most) * HEIGHT / self.most
    }

    fn line(&self, canvas: &mut Canvas, class: &str, values: &[u64]) {
        let at =
            |(step, &value): (usize, &u64)| (x(step as u64) + x(1) / 2 - LEFT / 2, self.y(value));
        let points: Vec<_> = values.iter().enumerate().map(at).collect();
        for pair in points.windows(2) {
            canvas.line(class, pair[0], pair[1]);
        }
    }

    fn area(&self, canvas: &mut Canvas, values: &[u64]) {
        let at =
            |(step, &value): (usize, &u64)| (x(step as u64) + x(1) / 2 - LEFT / 2, self.y(value));
        let mut points: Vec<_> = values.iter().enumerate().map(at).collect();
        let (first, last) = (points[0].0, points[points.len() - 1].0);
        points.insert(0, (first, self.base));
        points.push((last, self.base));
        canvas.path("f", &points);
    }
}

/// Requests of a class that arrived in a step: offered a second, served a second, and their p99
/// in milliseconds.
fn by_step(report: &Report, class: u8) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
    let each = |step: u64| {
        let is_in = |one: &&(u64, u8, Option<u64>)| one.1 == class && one.0 / STEP_US == step;
        let all: Vec<_> = report.requests.iter().filter(is_in).collect();
        let mut took: Vec<u64> = all.iter().filter_map(|one| one.2).collect();
        took.sort_unstable();
        let p99_us = took.get(took.len() * 99 / 100).copied().unwrap_or(0);
        let a_second = 1_000_000 / STEP_US;
        (all.len() as u64 * a_second, took.len() as u64 * a_second, p99_us / 1_000)
    };
    // The last step has requests that are not answered yet.
    let steps: Vec<_> = (0..STEPS - 2).map(each).collect();
    let part = |of: fn(&(u64, u64, u64)) -> u64| steps.iter().map(of).collect();
    (part(|step| step.0), part(|step| step.1), part(|step| step.2))
}

fn svg(report: &Report) -> String {
    let title = "Three times as many requests as the upstream can serve, for ten seconds";
    let height = TOP + 4 * (HEIGHT + BETWEEN) + 200;
    let mut canvas = Canvas::new(title, LEFT, (WIDTH, height), RULES);
    let said = "eight workers, 10 ms of work on average: 800 requests a second; no number is configured; simulated";
    canvas.text("m", LEFT, 530, said);
    let mut p99 = Vec::new();
    let classes = [("critical", "a fifth of the requests", 600), ("normal", "the rest", 2_400)];
    for (class, (name, said, most)) in (0..).zip(classes) {
        let said = format!("{said}: offered (line) and served (area) a second");
        let panel = Panel::draw(&mut canvas, class.into(), (name, &said), most);
        let (offered, served, took) = by_step(report, class);
        panel.area(&mut canvas, &served);
        panel.line(&mut canvas, "o", &offered);
        p99.push(took);
    }
    let said = "p99 in milliseconds of what is served: critical (blue), normal (orange)";
    let panel = Panel::draw(&mut canvas, 2, ("latency", said), 200);
    panel.line(&mut canvas, "q", &p99[1]);
    panel.line(&mut canvas, "k", &p99[0]);
    let panel = Panel::draw(&mut canvas, 3, ("limit", "requests in flight, found by itself"), 40);
    let limits: Vec<u64> = (0..STEPS as usize)
        .filter_map(|step| report.limits.get(step * STEP_US as usize / 100_000))
        .map(|&limit| limit.into())
        .collect();
    panel.line(&mut canvas, "k", &limits);
    for second in (0..=SECONDS).step_by(2) {
        canvas.text("m c", x(second * 4), panel.base + 200, &format!("{second} s"));
    }
    canvas.finish()
}

#[test]
fn the_picture_is_what_the_shedder_does() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/shedding.svg");
    let drawn = svg(&report());
    if env::var_os("TOLLGATE_WRITE").is_some() {
        fs::write(path, drawn).unwrap();
        return;
    }
    let known = fs::read_to_string(path).unwrap();
    assert!(known == drawn, "docs/pictures/shedding.svg is old; run this with TOLLGATE_WRITE=1");
}
