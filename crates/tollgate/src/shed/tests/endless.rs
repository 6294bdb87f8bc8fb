//! An upstream without a limit of its own: calls never queue, so nothing is worth shedding.

use super::properties::{MANY, mean, runs};
use super::simulation::{Report, Scenario, Service, Steps};

const ALL: [Service; 3] = [Service::Exponential, Service::Bimodal, Service::HeavyTail];
const SEEDS: u64 = 4;

fn endless(service: Service, mean_us: Steps<u64>, requests_per_s: Steps<u64>) -> Scenario {
    Scenario {
        service,
        workers: vec![(0, 1_000_000)],
        mean_us,
        requests_per_s,
        warm_s: 0,
        seconds: 20,
        patience_us: 20_000_000,
        ..Scenario::load(100)
    }
}

/// Requests that were refused from this second on.
fn shed_from(report: &Report, second: u64) -> u64 {
    let is_shed = |one: &&(u64, u8, Option<u64>)| one.0 >= second * 1_000_000 && one.2.is_none();
    report.requests.iter().filter(is_shed).count() as u64
}

/// Calls that suddenly take longer look like calls that queue. The limit has to double up to three
/// times meanwhile, and requests wait for a second.
#[test]
fn calls_that_suddenly_take_longer_are_no_overload() {
    for service in ALL {
        for (slower, most) in [(2, 0), (6, 100), (20, 3_000)] {
            let mean_us = vec![(0, 10_000), (10, slower * 10_000)];
            for report in runs(&endless(service, mean_us, vec![(0, 2_000)]), SEEDS) {
                let (all, late) = (shed_from(&report, 0), shed_from(&report, 13));
                let run = format!("{service:?}, {slower} times as long: {all} shed, {late} late");
                assert!(all <= most && late == 0, "{run}");
            }
        }
    }
}

#[test]
fn load_that_suddenly_grows_is_no_overload() {
    for service in ALL {
        for (per_s, mean_us) in [(2_000, 10_000), (1_000, 40_000)] {
            for times in [2, 4] {
                let requests_per_s = vec![(0, per_s), (10, times * per_s)];
                for report in runs(&endless(service, vec![(0, mean_us)], requests_per_s), SEEDS) {
                    let shed = shed_from(&report, 0);
                    assert_eq!(shed, 0, "{service:?}: {times} times {per_s}/s of {mean_us} us");
                }
            }
        }
    }
}

/// A node that starts in the middle of the load knows no call without a queue, so chance may end
/// the climb. The low level of the search must not look like an overload for ever.
#[test]
fn the_search_is_no_overload() {
    let plan = endless(Service::Bimodal, vec![(0, 40_000)], vec![(0, 10_000)]);
    let late = mean(&runs(&plan, MANY), |report| shed_from(report, 3));
    assert!(late <= 5_000, "{late} of 170000");
}
