use super::{Health, Outage, report_breaker, report_task_restarts};

#[test]
fn a_task_that_died_keeps_traffic_away_for_one_look() {
    let (health, mut before) = (Health::default(), 0);
    health.set_serving(true);
    let ready = [0, 1, 1, 3, 3].map(|died| {
        report_task_restarts(&health, died, &mut before);
        health.is_ready()
    });
    assert_eq!(ready, [true, false, true, false, true]);
}

#[test]
fn a_part_that_is_left_alone_is_named_and_keeps_no_traffic_away() {
    let health = Health::default();
    health.set_serving(true);
    let named = [true, false].map(|is_open| {
        report_breaker(&health, is_open);
        (health.is_ready(), health.problems().len())
    });
    assert_eq!(named, [(true, 1), (true, 0)]);
}

#[test]
fn an_outage_that_the_breaker_tells_of_is_not_told_twice() {
    let mut outage = Outage::default();
    for failure in 1..50 {
        assert!(outage.record_failure(failure >= 5, 5), "failure {failure}");
    }
    assert!(!outage.record_success());
    assert_eq!(outage.failures, 0);
}

#[test]
fn an_outage_that_no_breaker_tells_of_is_told_once() {
    let mut outage = Outage::default();
    for _ in 0..2 {
        let told = (1..50).filter(|_| !outage.record_failure(false, 5)).count();
        assert_eq!((told, outage.record_success(), outage.record_success()), (1, true, false));
    }
}
