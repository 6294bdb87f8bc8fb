//! The picture of `docs/leases.md`: what is admitted in each window while nodes die. `cargo xtask
//! simulate --picture` draws it.

use crate::plan::{Faults, Plan};
use crate::rng::Rng;
use crate::world::World;
use std::path::PathBuf;
use std::{env, fs};
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{LimitParams, Rate};
use tollgate_picture::Canvas;
use tollgate_picture::axis::format_grouped;
use tollgate_store::lease::LeaseTerms;

const SEED: u64 = 6;
const LIMIT: u64 = 1_000;
const WINDOW_US: u64 = 1_000_000;
/// Windows to show, after those in which nodes wait because they do not know the store.
const SHOWN: u64 = 10;
const STEP_US: u64 = 10_000;

const WIDTH: u64 = 9_600;
const LEFT: u64 = 720;
const RIGHT: u64 = 240;
const TOP: u64 = 1_000;
const HEIGHT: u64 = 2_400;
/// The scale goes a little beyond the limit.
const SCALE: u64 = 1_200;
const RULES: &str = "\
.d{stroke:#cf222e;stroke-width:1.6}.x{fill:#cf222e}.f{fill:#0072b2;fill-opacity:.25;stroke:#0072b2;stroke-width:1.4}\
@media(prefers-color-scheme:dark){.d{stroke:#ff7b72}.x{fill:#ff7b72}.f{fill:#4aa8e0;stroke:#4aa8e0}}";

/// Five nodes, twice as many requests as the limit has, and a node that dies now and then, to be
/// back within two lifetimes.
fn world() -> World {
    let params =
        LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(LIMIT, WINDOW_US).unwrap()));
    let plan = Plan {
        params,
        terms: LeaseTerms::for_limit(&params, 500_000, 100, 1_500_000).unwrap(),
        others: None,
        nodes: 5,
        keys: 1,
        length_us: (SHOWN + 5) * WINDOW_US,
        between_us: 500,
        skew: 0,
        cost_most: 1,
        phases_us: None,
        hoard: false,
        direct: false,
        sparse: 0,
        faults: Faults { delay_us: 400, crash: 16, ..Faults::default() },
    };
    let mut world = World::new(plan, Rng::new(SEED), false);
    world.run().expect("never more than the limit");
    world
}

fn svg(world: &World) -> String {
    let all = world.oracles[0].admissions();
    // From the start of a window, once every node has had the time to know the store.
    let first = all[0].0 / WINDOW_US + 3;
    let start_us = first * WINDOW_US;
    let end_us = start_us + SHOWN * WINDOW_US;
    let title = "Five nodes, one leased limit of 1,000 a second, and nodes that die";
    let mut canvas = Canvas::new(title, LEFT, (WIDTH, TOP + HEIGHT + 800), RULES);
    let said = "admitted since the start of each window, all nodes together; 2,000 requests a second; simulated";
    canvas.text("m", LEFT, 530, said);
    let x = |at_us: u64| LEFT + (at_us - start_us) * (WIDTH - LEFT - RIGHT) / (end_us - start_us);
    let base = TOP + HEIGHT;
    let y = |units: u64| base - units * HEIGHT / SCALE;
    for units in (0..=LIMIT).step_by(250) {
        canvas.line("g", (LEFT, y(units)), (WIDTH - RIGHT, y(units)));
        canvas.text("m e", LEFT - 80, y(units) + 40, &format_grouped(units));
    }
    for window in first..first + SHOWN {
        let from_us = window * WINDOW_US;
        let (mut points, mut count, mut at_us) = (vec![(x(from_us), base)], 0, from_us);
        let mut admissions = all.iter().filter(|one| one.2 == window).peekable();
        while at_us < from_us + WINDOW_US {
            at_us += STEP_US;
            while let Some(one) = admissions.next_if(|one| one.0 <= at_us) {
                count += one.1;
            }
            points.push((x(at_us), y(count)));
        }
        points.push((x(at_us), base));
        let shown = format!("{} s: {} admitted", window - first, format_grouped(count));
        canvas.group(&shown, |canvas| canvas.path("f", &points));
        canvas.text("m c", x(from_us + WINDOW_US / 2), base - 110, &format_grouped(count));
        canvas.line("g", (x(from_us), base), (x(from_us), base + 50));
        canvas.text("m c", x(from_us), base + 200, &format!("{} s", window - first));
    }
    canvas.line("l", (LEFT, y(LIMIT)), (WIDTH - RIGHT, y(LIMIT)));
    for at_us in world.deaths.iter().filter(|at_us| (start_us..end_us).contains(*at_us)) {
        let x = x(*at_us);
        canvas.line("d", (x, TOP), (x, base));
        canvas.path("x", &[(x - 55, TOP - 100), (x + 55, TOP - 100), (x, TOP)]);
    }
    legend(&mut canvas, base + 550);
    canvas.finish()
}

fn legend(canvas: &mut Canvas, y: u64) {
    canvas.rect("f", (LEFT, y - 105), (120, 120));
    canvas.text("", LEFT + 180, y, "admitted in the window so far");
    canvas.line("l", (LEFT + 2_700, y - 45), (LEFT + 2_940, y - 45));
    canvas.text("", LEFT + 3_000, y, "the limit");
    canvas.line("d", (LEFT + 4_100, y - 105), (LEFT + 4_100, y + 15));
    canvas.text("", LEFT + 4_180, y, "a node dies with what it holds");
}

#[test]
fn the_picture_is_what_the_simulation_does() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/leases.svg");
    let world = world();
    let drawn = svg(&world);
    if env::var_os("TOLLGATE_WRITE").is_some() {
        fs::write(path, drawn).unwrap();
        return;
    }
    assert!(world.deaths.len() > 3, "nodes die in it");
    let known = fs::read_to_string(path).unwrap();
    assert!(known == drawn, "make docs/pictures/leases.svg again: cargo xtask simulate --picture");
}
