//! The order level: where requests only queue inside the upstream, important ones overtake here.

use super::properties::{MANY, mean, runs};
use super::simulation::{Report, Scenario, Service};
use super::{enter, poll, queued};
use crate::shed::{AdaptiveSettings, AdaptiveShedder, Entry, ShedTicket, UpstreamOutcome};
use std::collections::VecDeque;

const BOTH: [Service; 2] = [Service::Exponential, Service::Bimodal];

fn refused(reports: &[Report]) -> u64 {
    reports.iter().map(|report| report.shed[0] + report.shed[1]).sum()
}

#[test]
fn at_capacity_the_important_overtake_as_in_a_tuned_proxy() {
    for service in BOTH {
        let of =
            |is_haproxy| runs(&Scenario { service, is_haproxy, ..Scenario::load(100) }, 2 * MANY);
        let (ours, haproxy) = (of(false), of(true));
        let p99_us = [&ours, &haproxy].map(|all| mean(all, |report| report.p99_us(Some(0))));
        let busy = [&ours, &haproxy].map(|all| mean(all, Report::busy_bp));
        let refused = [&ours, &haproxy].map(|all| refused(all));
        let run = format!("{service:?}: {p99_us:?} us, {busy:?} busy, {refused:?} refused");
        assert!(p99_us[0] * 4 <= p99_us[1] * 5, "{run}");
        assert!(busy[0] + 50 >= busy[1] && refused[0] <= refused[1], "{run}");
    }
}

#[test]
fn below_the_capacity_order_refuses_nothing() {
    for service in BOTH {
        for percent in [70, 80, 90] {
            let reports = runs(&Scenario { service, ..Scenario::load(percent) }, MANY);
            assert_eq!(refused(&reports), 0, "{service:?} at {percent} %");
            let p99_us = mean(&reports, |report| report.p99_us(Some(0)));
            assert!(p99_us <= 80_000, "{service:?} at {percent} %: {p99_us} us");
        }
    }
}

/// Mean time of what was served, from a second on.
fn mean_us(report: &Report, from: u64) -> u64 {
    let late = report.requests.iter().filter(|one| one.0 >= from * 1_000_000);
    let took: Vec<_> = late.filter_map(|one| one.2).collect();
    took.iter().sum::<u64>() / took.len() as u64
}

/// Calls that only become slower look like a queue until a probe.
#[test]
fn an_upstream_without_a_queue_is_not_ordered() {
    for service in [Service::Exponential, Service::Bimodal, Service::HeavyTail] {
        for (before_us, after_us) in [(10_000, 10_000), (10_000, 20_000)] {
            let plan = Scenario {
                service,
                workers: vec![(0, 1_000_000)],
                mean_us: vec![(0, before_us), (10, after_us)],
                requests_per_s: vec![(0, 2_000)],
                warm_s: 0,
                seconds: 20,
                patience_us: 20_000_000,
                ..Scenario::load(100)
            };
            let reports = runs(&plan, MANY);
            let (found, ideal) =
                (mean(&reports, |report| mean_us(report, 0)), (before_us + after_us) / 2);
            assert!(found * 100 <= ideal * 106, "{service:?}: {found} us instead of {ideal}");
            assert_eq!(refused(&reports), 0, "{service:?}, then {after_us} us");
        }
    }
}

#[test]
fn order_follows_workers_that_leave_and_come() {
    for service in BOTH {
        for (workers, load, most_us) in [(16, 800, 40_000), (16, 1_500, 80_000)] {
            let plan = Scenario {
                service,
                workers: vec![(0, 8), (10, workers)],
                requests_per_s: vec![(0, 800), (10, load)],
                patience_us: 2_000_000,
                ..Scenario::load(100)
            };
            let reports = runs(&plan, MANY);
            let found = mean(&reports, |report| mean_us(report, 15));
            assert!(found <= most_us, "{service:?}, {workers} workers, {load}/s: {found} us");
        }
        let workers = vec![(0, 8), (10, 4)];
        let plan = Scenario { service, workers, seconds: 20, ..Scenario::load(100) };
        for report in runs(&plan, MANY) {
            for second in 15..19 {
                let served = report.served_in(second, None);
                assert!(served >= 260, "{service:?}: {served} served in second {second}");
            }
        }
    }
}

/// An upstream that ends one call every `gap_us`, and connections that each send the next request
/// when the last one ends: twelve in the first two seconds, then fifty. A fifth of the requests is
/// of class 0, unless `is_mixed` is false.
struct ClosedLoop {
    shedder: AdaptiveShedder,
    now_us: u64,
    tickets: VecDeque<ShedTicket>,
    waiting: Vec<super::QueuedEntry>,
    count: u64,
    queued: u64,
}

impl ClosedLoop {
    fn run(settings: AdaptiveSettings, gap_us: u64, is_mixed: bool) -> Self {
        let (shedder, tickets) = (AdaptiveShedder::with_seed(settings, 1), VecDeque::new());
        let mut all =
            Self { shedder, now_us: 1, tickets, waiting: Vec::new(), count: 0, queued: 0 };
        (0..12).for_each(|_| all.send(is_mixed));
        let mut is_full = false;
        while all.now_us < 4_000_000 {
            all.now_us += gap_us;
            if all.now_us > 2_000_000 && !std::mem::replace(&mut is_full, true) {
                (0..38).for_each(|_| all.send(is_mixed));
            }
            let ticket = all.tickets.pop_front().expect("a call in flight");
            ticket.finish(all.now_us, UpstreamOutcome::Ok);
            all.send(is_mixed);
        }
        all
    }

    fn send(&mut self, is_mixed: bool) {
        self.count += 1;
        let class = u8::from(!is_mixed || !self.count.is_multiple_of(5));
        match enter(&self.shedder, self.now_us, class) {
            Entry::Admitted(ticket) => self.tickets.push_back(ticket),
            entry => {
                self.queued += 1;
                self.waiting.push(queued(entry));
            }
        }
        let tickets = &mut self.tickets;
        self.waiting.retain_mut(|entry| match poll(entry) {
            Some(result) => {
                tickets.push_back(result.expect("nobody is refused for order"));
                false
            }
            None => true,
        });
    }
}

#[test]
fn calls_that_are_not_worth_it_never_wait() {
    let settings = AdaptiveSettings::new(2);
    let ordered = ClosedLoop::run(settings, 1_250, true);
    assert!(ordered.queued > 300, "{} queued of {}", ordered.queued, ordered.count);
    // A gateway that is the bottleneck: calls wait in it for each other.
    for gap_us in [20, 100] {
        let fast = ClosedLoop::run(settings, gap_us, true);
        assert_eq!(fast.queued, 0, "of {}, one in {gap_us} us", fast.count);
    }
    let one_class = ClosedLoop::run(settings, 1_250, false);
    assert_eq!(one_class.queued, 0, "of {} of one class", one_class.count);
    let shadow = ClosedLoop::run(settings.shadow(true), 1_250, true);
    assert_eq!(shadow.queued, 0, "of {} in shadow mode", shadow.count);
}

#[test]
fn a_request_that_waits_for_order_passes_in_the_end() {
    let mut all = ClosedLoop::run(AdaptiveSettings::new(2), 1_250, true);
    // The upstream stops, and the wait goes on for longer than one for the limit.
    let mut entry = queued(enter(&all.shedder, all.now_us, 1));
    let again = queued(enter(&all.shedder, all.now_us + 400_000, 1));
    assert!(poll(&mut entry).is_none(), "{:?}", all.shedder.snapshot());
    assert!(again.expire().is_ok());
    let before_us = all.shedder.snapshot().classes[1].queue_us;
    assert!(entry.expire().is_ok());
    assert!(all.shedder.snapshot().classes[1].queue_us > before_us, "the wait counts");
    all.tickets.clear();
}
