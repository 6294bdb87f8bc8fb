use super::{ScenarioResult, page};
use crate::measurements::{Check, Measurements};
use crate::scenario::ROWS;
use std::collections::{BTreeMap, BTreeSet};

fn check(what: &str, held: bool) -> Check {
    Check { what: what.to_owned(), held, is_timed: false }
}

#[test]
fn rows_have_names_of_their_own() {
    let names: BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ROWS.len());
}

#[test]
fn the_worst_of_several_runs_counts() {
    let quick = Measurements { p99_us: Some((1_000, 2_000)), lost: 3, ..Measurements::default() };
    let slow = Measurements { p99_us: Some((9_000, 9_500)), errors: 1, ..Measurements::default() };
    let one = ScenarioResult::new(quick, vec![check("a", true), check("b", true)]);
    let other = ScenarioResult::new(slow, vec![check("a", false), check("b", true)]);
    let both = one.merge_run(other);
    assert!(!both.held() && both.runs == 2);
    assert_eq!(both.checks.iter().map(|check| check.held).collect::<Vec<_>>(), [false, true]);
    let figures = both.figures;
    assert_eq!((figures.lost, figures.errors, figures.p99_us), (3, 1, Some((1_000, 2_000))));
}

#[test]
fn the_load_is_stated() {
    let figures =
        Measurements { asked: Some((600, 3)), load_tenths: 12, ..Measurements::default() };
    let page = page(&BTreeMap::from([("gone", ScenarioResult::new(figures, Vec::new()))]), "");
    let stated = format!("| 600/s, 3 nodes, 1.2/{} |", crate::measurements::cores());
    assert!(page.contains(&stated), "{page}");
}

#[test]
fn rows_that_did_not_run_stay_on_the_page() {
    let run = |over| {
        let figures = Measurements { over_admission: Some(over), ..Measurements::default() };
        ScenarioResult::new(figures, vec![check("over-admission 0", over == 0)])
    };
    let first = page(&BTreeMap::from([("gone", run(0)), ("stopped", run(7))]), "");
    assert!(first.contains("| `stopped` | SIGSTOP"), "{first}");
    assert!(first.contains("(**not held**: over-admission 0)"), "{first}");
    let second = page(&BTreeMap::from([("stopped", run(0))]), &first);
    assert!(second.contains("| `gone` | SIGKILL") && second.contains("| runs: 1 |"), "{second}");
    assert!(!second.contains("(**not held**"), "{second}");
    assert_eq!(page(&BTreeMap::new(), &second), second);
}
