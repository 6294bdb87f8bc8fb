//! What must hold of the shedder, in virtual time.

use super::simulation::{Report, Scenario, Service, part_bp};

const BOTH: [Service; 2] = [Service::Exponential, Service::Bimodal];
/// Seeds of most properties, and of those that hold narrowly.
const FEW: u64 = 2;
pub(super) const MANY: u64 = 8;

pub(super) fn runs(plan: &Scenario, seeds: u64) -> Vec<Report> {
    (1..=seeds).map(|seed| Scenario { seed: seed * 7919, ..plan.clone() }.run()).collect()
}

pub(super) fn mean(reports: &[Report], of: impl Fn(&Report) -> u64) -> u64 {
    reports.iter().map(of).sum::<u64>() / reports.len() as u64
}

#[test]
fn at_three_times_capacity_the_important_are_served_and_the_rest_is_short() {
    for service in BOTH {
        let unloaded = Scenario { service, ..Scenario::load(30) }.run().p99_us(None);
        let reports = runs(&Scenario { service, ..Scenario::load(300) }, FEW);
        for report in &reports {
            assert!(report.served_bp(0) >= 9_990, "{service:?}: {}", report.served_bp(0));
            let p99_us = report.p99_us(None);
            assert!(p99_us * 10 <= unloaded * 14, "{service:?}: {p99_us} us, {unloaded} unloaded");
        }
        let busy = mean(&reports, Report::busy_bp);
        assert!(busy >= 9_700, "{service:?}: goodput {busy}");
    }
}

#[test]
fn at_five_times_capacity_the_important_alone_fill_the_service() {
    for service in BOTH {
        let reports = runs(&Scenario { service, ..Scenario::load(500) }, MANY);
        let served = mean(&reports, |report| report.served_bp(0));
        assert!(served >= 9_700, "{service:?}: {served}");
        for report in &reports {
            let (served, p99_us) = (report.served_bp(0), report.p99_us(Some(0)));
            assert!(served >= 9_500 && p99_us <= 150_000, "{service:?}: {served}, {p99_us} us");
        }
    }
}

#[test]
fn at_capacity_no_more_is_refused_than_by_a_tuned_proxy() {
    for service in BOTH {
        let shed = |is_haproxy| {
            let plan = Scenario { service, is_haproxy, ..Scenario::load(100) };
            runs(&plan, FEW).iter().map(|report| report.shed[0] + report.shed[1]).sum::<u64>()
        };
        let (ours, haproxy) = (shed(false), shed(true));
        assert!(ours <= haproxy, "{service:?}: {ours} shed, {haproxy} by the proxy");
    }
}

#[test]
fn the_limit_is_found_from_any_start() {
    for (workers, expected) in [(8, 80..=150), (100, 1_000..=1_400)] {
        for start in [4, 64, 300] {
            let requests_per_s = vec![(0, workers as u64 * 300)];
            let workers = vec![(0, workers)];
            let plan = Scenario { workers, requests_per_s, start, ..Scenario::load(300) };
            let report = plan.run();
            let found = report.mean_limit_x10(15..25);
            assert!(expected.contains(&found), "from {start}: {found} tenths");
        }
    }
}

/// Requests fill a higher level of a slow upstream slowly, and patient clients do not leave it.
#[test]
fn the_limit_of_a_slow_upstream_does_not_run_away() {
    for service in BOTH {
        for (mean_us, requests_per_s, most_x10, least_bp) in
            [(50_000, 160, 150, 9_800), (100_000, 80, 250, 9_600), (200_000, 30, 900, 9_200)]
        {
            let plan = Scenario {
                service,
                workers: vec![(0, 4)],
                mean_us: vec![(0, mean_us)],
                requests_per_s: vec![(0, requests_per_s)],
                patience_us: 10_000_000,
                seconds: 90,
                warm_s: 30,
                ..Scenario::load(200)
            };
            // One run of eight may have bad luck with its estimates.
            let reports = runs(&plan, MANY);
            let limit = |report: &Report| u64::from(report.mean_limit_x10(60..90));
            let (found, served) = (mean(&reports, limit), mean(&reports, |run| run.served_bp(0)));
            let context = format!("{service:?}, {mean_us} us: {found} tenths, {served} served");
            assert!(found <= most_x10 && served >= least_bp, "{context}");
            for report in &reports {
                let (found, served) = (limit(report), report.served_bp(0));
                let run = format!("{context}, but {found} and {served} in one run");
                assert!(found <= most_x10 * 3 / 2 && served + 200 >= least_bp, "{run}");
            }
            // The search itself, while the upstream works off what it got before.
            let search = Scenario { warm_s: 0, seconds: 50, ..plan };
            let served = mean(&runs(&search, MANY), |report| report.served_bp(0));
            assert!(served >= 9_000, "{service:?}, {mean_us} us: {served} served from the start");
        }
    }
}

#[test]
fn the_limit_rests_under_constant_overload() {
    for service in [Service::Exponential, Service::Bimodal, Service::HeavyTail] {
        let report = Scenario { service, seconds: 60, ..Scenario::load(300) }.run();
        let mean = report.mean_limit_x10(10..60);
        let off = |limit: &u32| (limit * 10).abs_diff(mean);
        let all = report.limits(10..60);
        let mean_off = all.iter().map(off).sum::<u32>() / all.len() as u32;
        assert!(mean_off * 10 <= mean, "{service:?}: {mean_off} off {mean} on average");
        let (early, late) = (report.mean_limit_x10(10..25), report.mean_limit_x10(45..60));
        assert!(early.abs_diff(late) * 10 <= early * 2, "{service:?}: from {early} to {late}");
    }
}

#[test]
fn after_the_overload_nothing_is_shed() {
    for service in BOTH {
        let requests_per_s = vec![(0, 2_400), (10, 400)];
        let plan =
            Scenario { service, requests_per_s, seconds: 20, warm_s: 12, ..Scenario::load(300) };
        for report in runs(&plan, MANY) {
            assert_eq!(report.shed, [0, 0], "{service:?}");
        }
    }
}

#[test]
fn no_class_flaps_under_constant_overload() {
    // Variances by chance: of what eight workers complete in a second, and of what arrives.
    for (service, completed) in [(Service::Exponential, 800), (Service::Bimodal, 1_800)] {
        for percent in [200, 300] {
            let report = Scenario { service, seconds: 40, ..Scenario::load(percent) }.run();
            let critical = percent * 8 / 5;
            for (class, chance) in [(0, critical), (1, critical + completed)] {
                let counts: Vec<u64> =
                    (10..39).map(|second| report.served_in(second, Some(class))).collect();
                let mean = counts.iter().sum::<u64>() / counts.len() as u64;
                let squares = counts.iter().map(|count| count.abs_diff(mean).pow(2)).sum::<u64>();
                let variance = squares / counts.len() as u64;
                let most = chance + (mean / 10).pow(2);
                assert!(variance <= most, "{service:?} at {percent} %: {class}: {counts:?}");
            }
        }
    }
}

#[test]
fn pauses_of_the_upstream_do_not_move_the_limit() {
    // The long pauses are the hard ones.
    for (pauses, seeds) in
        [((1_000_000, 50_000), MANY), ((200_000, 10_000), FEW), ((50_000, 5_000), FEW)]
    {
        let pauses = Some(pauses);
        for service in BOTH {
            let reports = runs(&Scenario { service, pauses, ..Scenario::load(300) }, seeds);
            // The search from above takes up to nine seconds while the upstream pauses.
            let limit = |report: &Report| u64::from(report.mean_limit_x10(10..25));
            let found = mean(&reports, limit);
            assert!((100..=130).contains(&found), "{service:?} {pauses:?}: {found} tenths");
            for report in &reports {
                let (served, found) = (report.served_bp(0), limit(report));
                assert!(served >= 9_970, "{service:?} {pauses:?}: {served}");
                assert!((90..=160).contains(&found), "{service:?} {pauses:?}: {found} tenths");
                let least = report.limits(5..25).iter().min();
                assert!(least >= Some(&5), "{service:?} {pauses:?}: {least:?}");
            }
        }
    }
}

/// A state that stands still again and again while the limit is unknown: clients leave, and the
/// upstream still has their calls.
#[test]
fn a_machine_that_stands_still_does_not_end_in_collapse() {
    for service in BOTH {
        for (stall_us, between_us) in [(1_000_000, 1_500_000), (2_000_000, 500_000)] {
            for start_us in [100_000, 300_000] {
                let starts = (0..4).map(|n| start_us + n * (stall_us + between_us));
                let stalls_us: Vec<_> = starts.map(|from_us| (from_us, stall_us)).collect();
                let warm_s = 4 + 4 * (stall_us + between_us) / 1_000_000;
                let seconds = warm_s + 6;
                let plan = Scenario { service, stalls_us, warm_s, seconds, ..Scenario::load(500) };
                for report in runs(&plan, MANY) {
                    let served = report.served_bp(0);
                    assert!(served >= 7_500, "{service:?}, {stall_us} from {start_us}: {served}");
                }
            }
        }
    }
}

/// Clients that wait for less than the first limit makes them wait.
#[test]
fn clients_who_leave_early_lower_the_limit() {
    for (service, least) in [(Service::Exponential, 9_500), (Service::Bimodal, 7_500)] {
        let plan = Scenario { service, patience_us: 85_000, warm_s: 10, ..Scenario::load(300) };
        let served = mean(&runs(&plan, MANY), |report| report.served_bp(0));
        assert!(served >= least, "{service:?}: {served}");
    }
}

#[test]
fn the_limit_follows_workers_that_leave_and_come() {
    for service in BOTH {
        for (workers, expected) in [(4, 50..=80), (16, 170..=230)] {
            let workers = vec![(0, 8), (10, workers)];
            let plan = Scenario { service, workers, seconds: 25, ..Scenario::load(600) };
            for report in runs(&plan, MANY) {
                let found = report.mean_limit_x10(20..25);
                assert!(expected.contains(&found), "{service:?}: {found} tenths");
            }
        }
    }
}

#[test]
fn half_the_workers_serve_half_at_every_moment() {
    for service in BOTH {
        let workers = vec![(0, 8), (10, 4)];
        let plan = Scenario { service, workers, seconds: 20, ..Scenario::load(300) };
        for report in runs(&plan, MANY) {
            let found = report.mean_limit_x10(15..20);
            assert!(found <= 90, "{service:?}: the new limit within five seconds, not {found}");
            for second in 11..19 {
                let served = report.served_in(second, None);
                assert!(served >= 260, "{service:?}: {served} served in second {second}");
            }
        }
    }
}

#[test]
fn calls_that_get_slower_do_not_lower_the_limit() {
    let mean_us = vec![(0, 10_000), (10, 20_000)];
    for service in BOTH {
        let mean_us = mean_us.clone();
        let report = Scenario { service, mean_us, seconds: 30, ..Scenario::load(300) }.run();
        let found = report.mean_limit_x10(20..30);
        assert!((85..=150).contains(&found), "{service:?}: {found} tenths");
    }
}

#[test]
fn one_slow_call_moves_nothing() {
    for percent in [50, 300] {
        let plain = Scenario::load(percent).run();
        let slow = Scenario { slow_call_s: Some(8), ..Scenario::load(percent) }.run();
        let (plain, slow) = (plain.mean_limit_x10(10..25), slow.mean_limit_x10(10..25));
        assert!(plain.abs_diff(slow) <= 15, "at {percent} %: {plain} and {slow} tenths");
    }
}

#[test]
fn errors_of_the_upstream_lower_the_limit() {
    for percent in [50, 300] {
        let report = Scenario { failing: 8..14, ..Scenario::load(percent) }.run();
        let (before, after) = (report.limits(7..8)[0], report.limits(13..14)[0]);
        assert!(after * 2 <= before, "at {percent} %: {after} after {before}");
        assert!(report.limits(24..25)[0] >= 4);
    }
}

/// An endpoint that always answers 503 lowers the limit until it is clear that this does not help.
#[test]
fn a_broken_endpoint_does_not_lower_the_limit() {
    for service in BOTH {
        for broken_percent in [15, 30, 60] {
            let plan = |percent: u64| Scenario {
                service,
                broken_percent,
                warm_s: 10,
                ..Scenario::load(percent * 100 / (100 - broken_percent))
            };
            for report in runs(&plan(70), FEW) {
                assert_eq!(report.shed, [0, 0], "{service:?}, {broken_percent} % broken");
            }
            let reports = runs(&plan(300), FEW);
            let busy = mean(&reports, Report::busy_bp);
            assert!(busy >= 9_500, "{service:?}, {broken_percent} % broken: goodput {busy}");
            let shed = mean(&reports, |report| report.shed[0] * 10_000 / report.offered[0]);
            assert!(shed <= 100, "{service:?}, {broken_percent} % broken: critical shed {shed}");
        }
    }
}

/// An upstream that answers 503 because it is full is overloaded, whatever else is broken.
#[test]
fn errors_of_a_full_upstream_lower_the_limit() {
    for service in BOTH {
        for broken_percent in [0, 30] {
            let healthy = 100 - broken_percent;
            let load = Scenario::load(300 * 100 / healthy);
            let plan = Scenario { service, broken_percent, full_at: 12, ..load };
            for report in runs(&plan, FEW) {
                let context = format!("{service:?}, {broken_percent} % broken");
                let offered = report.offered[0] * healthy / 100;
                let served = report.served[0];
                assert!(served * 100 >= offered * 98, "{context}: {served} of {offered}");
                let found = report.mean_limit_x10(10..25);
                assert!((90..=130).contains(&found), "{context}: {found} tenths");
            }
        }
    }
}

#[test]
fn a_less_important_class_is_shed_first() {
    for percent in [200, 300] {
        let report = Scenario::load(percent).run();
        assert!(report.shed[0] * 1_000 <= report.offered[0], "{:?}", report.shed);
        assert!(report.shed[1] * 3 >= report.offered[1], "{:?}", report.shed);
    }
}

/// One client sends most, and twenty others send less than their shares: in the class that is being
/// shed at two and three times, and in the critical one at five times.
#[test]
fn the_client_who_sends_most_is_shed_first() {
    for service in BOTH {
        for (percent, hog_percent, class) in [
            (200, 70, 1),
            (200, 80, 1),
            (200, 90, 1),
            (300, 88, 1),
            (300, 90, 1),
            (300, 95, 1),
            (500, 60, 0),
        ] {
            let plan = Scenario {
                service,
                hog_percent,
                warm_s: 10,
                seconds: 40,
                ..Scenario::load(percent)
            };
            let reports = runs(&plan, 4);
            let others = mean(&reports, |report| part_bp(report.others[class]));
            let hog = mean(&reports, |report| part_bp(report.hog[class]));
            let context = format!("{service:?} at {percent} %, {hog_percent} % by one");
            assert!(others >= 9_900, "{context}: the others get {others}, the one {hog}");
        }
    }
}

/// Nothing overloads an upstream with more workers than requests. The first limit is a guess, and
/// requests wait while it climbs.
#[test]
fn an_upstream_that_keeps_up_sheds_nothing() {
    for (per_s, mean_us) in [(120, 500_000), (60, 500_000), (250, 100_000), (100, 10_000)] {
        let plan = Scenario {
            workers: vec![(0, 1_000)],
            mean_us: vec![(0, mean_us)],
            requests_per_s: vec![(0, per_s)],
            warm_s: 0,
            ..Scenario::load(100)
        };
        for report in runs(&plan, FEW) {
            assert_eq!(report.shed, [0, 0], "{per_s}/s of {mean_us} us");
        }
    }
    // Eight times the first limit: it doubles about once in a second.
    let plan = Scenario {
        workers: vec![(0, 1_000)],
        mean_us: vec![(0, 500_000)],
        requests_per_s: vec![(0, 600)],
        ..Scenario::load(100)
    };
    for report in runs(&plan, FEW) {
        assert_eq!(report.shed, [0, 0], "from the fifth second on");
    }
}

/// The limit falls from its first guess, and the upstream works off what it got by then.
#[test]
fn the_first_overload_sheds_next_to_nothing_critical() {
    for service in BOTH {
        // From 700 a second calls queue before the overload, so the climb may go too far.
        for (before, most_bp) in [(100, 0), (400, 0), (700, 10)] {
            let requests_per_s = vec![(0, before), (10, 2_400), (20, before)];
            let plan = Scenario { service, requests_per_s, warm_s: 0, ..Scenario::load(50) };
            let reports = runs(&plan, MANY);
            let sum =
                |of: fn(&Report) -> [u64; 2]| reports.iter().map(|run| of(run)[0]).sum::<u64>();
            let (shed, offered) = (sum(|run| run.shed), sum(|run| run.offered));
            let context = format!("{service:?}: {shed} of {offered}, from {before} a second");
            assert!(shed * 10_000 <= offered * most_bp, "{context}");
        }
    }
}

/// A load that pauses leaves no second of overload to learn from.
#[test]
fn the_limit_recovers_from_errors_though_the_load_pauses() {
    let bursts = (0..20).flat_map(|n| [(2 * n, 120), (2 * n + 1, 1)]);
    let plan = Scenario {
        mean_us: vec![(0, 40_000)],
        requests_per_s: bursts.collect(),
        failing: 2..6,
        seconds: 20,
        warm_s: 10,
        ..Scenario::load(60)
    };
    for report in runs(&plan, FEW) {
        assert_eq!(report.shed, [0, 0]);
    }
}
