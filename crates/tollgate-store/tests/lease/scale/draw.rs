//! The picture of the table: calls and under-admission against the lifetime.

use super::cell::Cell;
use super::table::{LIFETIMES_MS, SPREADS, Table, percent};
use tollgate_picture::Canvas;
use tollgate_picture::axis::{format_duration, format_grouped};

const WIDTH: u64 = 9_600;
const LEFT: u64 = 1_100;
const RIGHT: u64 = 2_000;
const TOP: u64 = 1_150;
const HEIGHT: u64 = 2_300;
const BETWEEN: u64 = 900;
/// Lines in the colours of the other pictures, and one more.
const RULES: &str = "\
.p,.q,.s{fill:none;stroke-width:2.2}.p{stroke:#0072b2}.q{stroke:#e69f00}.s{stroke:#009e73}\
@media(prefers-color-scheme:dark){.p{stroke:#4aa8e0}}";

struct Series {
    name: String,
    class: &'static str,
    /// By lifetime, on the scale of the panel; `None` where there is none.
    values: Vec<Option<u64>>,
}

/// The picture.
pub(super) fn svg(table: &Table) -> String {
    let title = "Leases at scale: 1,000 nodes, a million keys, ten million requests a second";
    let height = TOP + 2 * HEIGHT + BETWEEN + 700;
    let mut canvas = Canvas::new(title, LEFT - 640, (WIDTH, height), RULES);
    let said = "simulated; each key may have 100,000 in 10 s; lease lifetime from left to right";
    canvas.text("m", LEFT - 640, 530, said);
    let spread = |nodes: u64, class| Series {
        name: match nodes {
            1_000 => "any of 1,000 nodes".to_owned(),
            nodes => format!("{nodes} nodes a key"),
        },
        class,
        values: of(table, "fixed-window", nodes, |total| total.calls),
    };
    let classes = ["p", "q", "s"];
    let calls: Vec<_> =
        SPREADS.into_iter().zip(classes).map(|(nodes, class)| spread(nodes, class)).collect();
    let exact = Cell { algorithm: "fixed-window", nodes: SPREADS[0], lifetime_ms: 0 };
    canvas.heading(
        LEFT - 640,
        TOP - 250,
        "calls to the store a second",
        "fixed window; dashed: nothing leased",
    );
    let label = |value: u64| format!("{} M", value / 1_000_000);
    panel(&mut canvas, TOP, (12_000_000, 2_000_000), &calls, Some(table.total(exact).calls), label);

    let top = TOP + HEIGHT + BETWEEN;
    let under = |name: &str, algorithm, class| Series {
        name: name.to_owned(),
        class,
        values: of(table, algorithm, SPREADS[0], |total| total.under_ppm),
    };
    let unders = [
        under("fixed window", "fixed-window", "p"),
        under("gcra", "gcra", "q"),
        under("sliding window", "sliding-window", "s"),
    ];
    canvas.heading(
        LEFT - 640,
        top - 250,
        "under-admission",
        "of what would be admitted without leases; any of 1,000 nodes",
    );
    let most = unders.iter().flat_map(|one| one.values.iter().flatten()).max().copied();
    let step = match most.unwrap_or(0) {
        0..4_000 => 1_000,
        4_000..10_000 => 2_500,
        _ => 5_000,
    };
    let most = most.unwrap_or(0).div_ceil(step).max(1) * step;
    panel(&mut canvas, top, (most, step), &unders, None, |ppm| percent(ppm, 2));
    canvas.finish()
}

fn of(
    table: &Table,
    algorithm: &'static str,
    nodes: u64,
    value: fn(&super::table::Total) -> u64,
) -> Vec<Option<u64>> {
    let cells = super::table::cells();
    let at = LIFETIMES_MS.map(|lifetime_ms| {
        let cell = Cell { algorithm, nodes, lifetime_ms };
        cells.contains(&cell).then(|| value(&table.total(cell)))
    });
    at.to_vec()
}

fn panel(
    canvas: &mut Canvas,
    top: u64,
    (most, step): (u64, u64),
    series: &[Series],
    dashed: Option<u64>,
    label: impl Fn(u64) -> String,
) {
    let base = top + HEIGHT;
    let x = |place: usize| {
        LEFT + place as u64 * (WIDTH - LEFT - RIGHT) / (LIFETIMES_MS.len() as u64 - 1)
    };
    let y = |value: u64| base - value.min(most) * HEIGHT / most;
    for mark in 0..=most / step {
        canvas.line("g", (LEFT, y(mark * step)), (WIDTH - RIGHT, y(mark * step)));
        canvas.text("m e", LEFT - 80, y(mark * step) + 40, &label(mark * step));
    }
    for (place, lifetime_ms) in LIFETIMES_MS.into_iter().enumerate() {
        canvas.line("g", (x(place), top), (x(place), base + 50));
        canvas.text("m c", x(place), base + 200, &format_duration(lifetime_ms * 1_000));
    }
    if let Some(value) = dashed {
        canvas.line("l", (LEFT, y(value)), (WIDTH - RIGHT, y(value)));
    }
    // Names stand beside the ends of their lines, and not on each other.
    let mut taken = Vec::<u64>::new();
    for one in series {
        let known: Vec<_> = (0..).zip(&one.values).filter_map(|(n, v)| v.map(|v| (n, v))).collect();
        let points: Vec<_> = known.iter().map(|(place, value)| (x(*place), y(*value))).collect();
        canvas.path(one.class, &points);
        for (place, value) in &known {
            let shown = format!(
                "{}, {}: {}",
                one.name,
                format_duration(LIFETIMES_MS[*place] * 1_000),
                format_grouped(*value)
            );
            canvas.group(&shown, |canvas| {
                canvas.rect("h", (x(*place) - 60, y(*value) - 60), (120, 120));
            });
        }
        let Some((place, value)) = known.last() else { continue };
        let mut at = y(*value) + 40;
        while let Some(other) = taken.iter().find(|other| other.abs_diff(at) < 160) {
            at = other - 160;
        }
        taken.push(at);
        canvas.text("", x(*place) + 100, at, &one.name);
    }
}
