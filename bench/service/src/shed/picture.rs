//! Draws goodput, critical requests served and their p99 over the load: a line per guard, a column
//! per kind of work.

use super::{CAPACITY, Cell, LOADS, WORKS, guards};
use tollgate_picture::Canvas;
use tollgate_picture::axis::format_grouped;

const WIDTH: u64 = 9_600;
const LEFT: u64 = 600;
const TOP: u64 = 1_500;
const PANEL: (u64, u64) = (3_900, 1_500);
const BETWEEN: (u64, u64) = (600, 750);
const LOAD_MAX: f64 = 5.0;
const MARK: u64 = 60;
/// The colours of guards differ in lightness too, for colour-blind readers.
const RULES: &str = "\
.c0{stroke:#8c959f}.c1{stroke:#009e73}.c2{stroke:#cc79a7}.c3{stroke:#e69f00}.c4{stroke:#0072b2;stroke-width:2.4}\
.s{fill:none;stroke-width:1.6}.d{stroke-dasharray:4 3}";

struct Panel {
    name: &'static str,
    unit: &'static str,
    most: u64,
    value: fn(&Cell) -> f64,
}

const PANELS: [Panel; 3] = [
    Panel { name: "goodput", unit: "served a second", most: 1_000, value: |cell| cell.goodput },
    Panel {
        name: "critical served",
        unit: "percent of critical requests",
        most: 100,
        value: |cell| cell.critical_percent,
    },
    Panel {
        name: "p99 of critical",
        unit: "milliseconds, of what is served",
        most: 500,
        value: |cell| cell.critical_p99_ms,
    },
];

pub(super) fn svg(cells: &[Cell]) -> String {
    let title = "Load shedding, from half to five times what the upstream can serve";
    let height = TOP + PANELS.len() as u64 * (PANEL.1 + BETWEEN.1);
    let mut canvas = Canvas::new(title, LEFT, (WIDTH, height), RULES);
    legend(&mut canvas);
    for (column, work) in (0..).zip(WORKS) {
        for (row, panel) in (0..).zip(&PANELS) {
            let x = LEFT + column * (PANEL.0 + BETWEEN.0);
            let y = TOP + row * (PANEL.1 + BETWEEN.1);
            draw(&mut canvas, (x, y), panel, work, cells);
        }
    }
    canvas.finish()
}

fn legend(canvas: &mut Canvas) {
    for (n, name) in (0..).zip(guards::ALL) {
        let (x, y) = (LEFT + n % 3 * 3_300, 600 + n / 3 * 250);
        canvas.line(&format!("s c{n}"), (x, y - 40), (x + 300, y - 40));
        canvas.text("m", x + 380, y, name);
    }
}

fn draw(canvas: &mut Canvas, (x, y): (u64, u64), panel: &Panel, work: &str, cells: &[Cell]) {
    canvas.heading(x, y - 130, panel.name, &format!("{}; {work} work", panel.unit));
    let height = |value: f64| {
        let part = (value / panel.most as f64).clamp(0.0, 1.0);
        y + PANEL.1 - (part * PANEL.1 as f64) as u64
    };
    for part in 0..=4 {
        let value = panel.most * part / 4;
        canvas.line("g", (x, height(value as f64)), (x + PANEL.0, height(value as f64)));
        canvas.text("m e", x - 60, height(value as f64) + 40, &format_grouped(value));
    }
    if panel.most as f64 > CAPACITY {
        canvas.line("l", (x, height(CAPACITY)), (x + PANEL.0, height(CAPACITY)));
    }
    let place = |load: f64| x + (load / LOAD_MAX * PANEL.0 as f64) as u64;
    for load in LOADS {
        canvas.text("m c", place(load), y + PANEL.1 + 190, &format!("{load} x"));
    }
    for (n, guard) in guards::ALL.iter().enumerate() {
        let of = |cell: &&Cell| cell.guard == *guard && cell.work == work;
        let figures = cells.iter().filter(of).map(|cell| (cell.load, (panel.value)(cell)));
        let points: Vec<(u64, u64)> = figures
            .filter(|(_, value)| value.is_finite())
            .map(|(load, value)| (place(load), height(value)))
            .collect();
        canvas.path(&format!("s c{n}"), &points);
        for (x, y) in points {
            canvas.path(&format!("s c{n}"), &[(x - MARK, y), (x + MARK, y)]);
        }
    }
}
