use super::{Attempt, Supervisor, WatchedThreads};
use crate::Health;
use std::sync::Arc;

#[test]
fn what_breaks_off_keeps_traffic_away_until_it_is_at_work_again() {
    let health = Arc::new(Health::default());
    let threads = Arc::new(WatchedThreads::new(health.clone()));
    health.set_serving(true);
    let supervisor = Supervisor::new("worker-7".to_owned(), Some(threads));
    let mut seen = Vec::new();
    supervisor.run(|turn| {
        assert_eq!(turn == Attempt::First, seen.is_empty());
        seen.push((health.is_ready(), supervisor.is_running()));
        match seen.len() {
            1 => panic!("as asked"),
            2 => {
                supervisor.mark_running();
                panic!("again")
            }
            _ => supervisor.mark_running(),
        }
    });
    assert_eq!(seen, [(true, true), (false, false), (false, false)]);
    assert!(health.is_ready() && health.problems().is_empty());
}

#[test]
fn a_stuck_control_thread_is_named_and_the_node_stays_ready() {
    let health = Arc::new(Health::default());
    let threads = WatchedThreads::new(health.clone());
    health.set_serving(true);
    let problems_at = |now_us| {
        threads.check_asker(now_us);
        health.problems().len()
    };
    assert_eq!(problems_at(9_000_000), 0, "it has not started");
    threads.ask(9_000_000);
    assert_eq!((problems_at(13_000_000), problems_at(13_000_001)), (0, 1));
    assert!(health.is_ready());
    threads.ask(14_000_000);
    assert_eq!(problems_at(14_000_000), 0);
}
