//! An upstream that fails every call for a while, and then works as before.

use super::properties::{MANY, mean, runs};
use super::simulation::{Report, Scenario, Service};

const BOTH: [Service; 2] = [Service::Exponential, Service::Bimodal];
/// What the limit may take to return after an outage, and to find itself after an overload.
const RETURN_MS: u64 = 2_000;

/// Requests that came between these milliseconds and were refused.
fn shed_in(report: &Report, times_ms: std::ops::Range<u64>) -> usize {
    let is_in = |one: &&(u64, u8, Option<u64>)| times_ms.contains(&(one.0 / 1_000));
    report.requests.iter().filter(is_in).filter(|one| one.2.is_none()).count()
}

/// A thousand workers: far more than the load needs, so that no request is worth shedding.
fn ample((per_s, mean_us): (u64, u64), outages_ms: Vec<(u64, u64)>) -> Scenario {
    let end_ms = outages_ms.last().map_or(0, |outage| outage.1);
    Scenario {
        workers: vec![(0, 1_000)],
        mean_us: vec![(0, mean_us)],
        requests_per_s: vec![(0, per_s)],
        outages_ms,
        warm_s: 0,
        seconds: end_ms / 1_000 + 15,
        patience_us: 20_000_000,
        ..Scenario::load(100)
    }
}

#[test]
fn after_an_outage_nothing_is_shed() {
    for load in [(110, 500_000), (110, 100_000), (300, 500_000), (1_000, 10_000)] {
        for down_ms in [300, 1_000, 3_000, 10_000] {
            for is_killed in [true, false] {
                let end_ms = 8_000 + down_ms;
                let plan = Scenario { is_killed, ..ample(load, vec![(8_000, end_ms)]) };
                for report in runs(&plan, MANY) {
                    let from_ms = end_ms + RETURN_MS + load.1 / 1_000;
                    let shed = shed_in(&report, from_ms..u64::MAX);
                    assert_eq!(shed, 0, "{load:?}, down for {down_ms} ms, killed: {is_killed}");
                }
            }
        }
    }
}

/// The gateway starts first, and knows nothing of the upstream when calls begin to fail.
#[test]
fn an_upstream_that_starts_late_is_served() {
    for load in [(110, 500_000), (110, 100_000), (1_000, 10_000)] {
        for report in runs(&ample(load, vec![(0, 3_000)]), MANY) {
            let from_ms = 3_000 + RETURN_MS + load.1 / 1_000;
            assert_eq!(shed_in(&report, from_ms..u64::MAX), 0, "{load:?}");
        }
    }
}

/// The second outage says no more about the load than the first.
#[test]
fn outages_that_repeat_are_no_overload() {
    let outages_ms: Vec<_> = (1..6).map(|n| (n * 6_000, n * 6_000 + 1_000)).collect();
    let plan = Scenario { is_killed: true, ..ample((110, 500_000), outages_ms.clone()) };
    for report in runs(&plan, MANY) {
        for (start_ms, end_ms) in &outages_ms {
            let times_ms = end_ms + RETURN_MS + 500..start_ms + 6_000;
            assert_eq!(shed_in(&report, times_ms), 0, "after the outage at {start_ms} ms");
        }
    }
}

#[test]
fn an_overloaded_upstream_that_restarts_is_protected() {
    for service in BOTH {
        for down_s in [1, 3] {
            for is_killed in [true, false] {
                let end_s = 10 + down_s;
                let outages_ms = vec![(10_000, end_s * 1_000)];
                let plan = Scenario {
                    service,
                    is_killed,
                    outages_ms,
                    warm_s: end_s,
                    seconds: end_s + 5,
                    ..Scenario::load(300)
                };
                let context = format!("{service:?}, down for {down_s} s, killed: {is_killed}");
                let served = mean(&runs(&plan, MANY), |report| report.served_bp(0));
                assert!(served >= 9_500, "{context}: {served} served at first");
                let plan = Scenario { warm_s: end_s + 5, seconds: end_s + 15, ..plan };
                let reports = runs(&plan, MANY);
                for report in &reports {
                    let served = report.served_bp(0);
                    assert!(served >= 9_900, "{context}: {served} served");
                }
                let busy = mean(&reports, Report::busy_bp);
                assert!(busy >= 9_700, "{context}: goodput {busy}");
            }
        }
    }
}

/// Half of the workers return. What was learnt before is too much for them.
#[test]
fn an_upstream_that_returns_with_less_is_protected() {
    for service in BOTH {
        let plan = Scenario {
            service,
            workers: vec![(0, 8), (13, 4)],
            outages_ms: vec![(10_000, 13_000)],
            is_killed: true,
            warm_s: 15,
            ..Scenario::load(200)
        };
        let served = mean(&runs(&plan, MANY), |report| report.served_bp(0));
        assert!(served >= 9_900, "{service:?}: {served}");
    }
}

/// An upstream that answers 503 because it is full completes calls all the same: it is not down.
#[test]
fn a_slow_upstream_that_is_full_is_not_down() {
    for (service, least) in [(Service::Exponential, 8_200), (Service::Bimodal, 6_500)] {
        let plan = Scenario {
            service,
            workers: vec![(0, 4)],
            mean_us: vec![(0, 200_000)],
            requests_per_s: vec![(0, 60)],
            full_at: 8,
            warm_s: 0,
            seconds: 60,
            ..Scenario::load(300)
        };
        let part = |report: &Report| report.served[0] * 10_000 / report.offered[0];
        let served = mean(&runs(&plan, MANY), part);
        assert!(served >= least, "{service:?}: {served}");
    }
}

/// An upstream that waits too long, and does the work for nobody, fails slowly: it is not down.
#[test]
fn calls_that_time_out_are_no_outage() {
    for (service, least) in [(Service::Exponential, 9_800), (Service::Bimodal, 9_300)] {
        let plan = Scenario { service, timeout_us: 200_000, warm_s: 0, ..Scenario::load(300) };
        let part = |report: &Report| report.served[0] * 10_000 / report.offered[0];
        let served = mean(&runs(&plan, MANY), part);
        assert!(served >= least, "{service:?}: {served}");
    }
}

/// An upstream that dies of too many calls does so only a few times.
#[test]
fn an_upstream_that_dies_of_the_load_is_spared() {
    for service in BOTH {
        let plan = Scenario { service, dies_at: 40, warm_s: 0, ..Scenario::load(300) };
        for report in runs(&plan, MANY) {
            let down = (0..25).filter(|&second| report.served_in(second, None) < 400).count();
            assert!(down <= 3, "{service:?}: in {down} seconds");
        }
    }
}
