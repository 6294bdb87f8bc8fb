use super::{Attempt, Supervisor};
use crate::Node;
use std::sync::Arc;
use tollgate_policy::compile;

#[test]
fn what_breaks_off_keeps_traffic_away_until_it_is_at_work_again() {
    let compiled = compile(b"limits: [{name: a, rate: 5/min}]").unwrap();
    let setup = tollgate::engine::Setup::of(&compiled);
    let node = Arc::new(Node::new(compiled, setup).unwrap());
    node.health.set_serving(true);
    let supervisor = Supervisor::new("worker-7".to_owned(), Some(node.clone()));
    let mut seen = Vec::new();
    supervisor.run(|turn| {
        assert_eq!(turn == Attempt::First, seen.is_empty());
        seen.push((node.health.is_ready(), supervisor.is_running()));
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
    assert!(node.health.is_ready() && node.health.problems().is_empty());
}

#[test]
fn a_stuck_control_thread_is_named_and_the_node_stays_ready() {
    let compiled = compile(b"limits: [{name: a, rate: 5/min}]").unwrap();
    let setup = tollgate::engine::Setup::of(&compiled);
    let node = Node::new(compiled, setup).unwrap();
    node.health.set_serving(true);
    let problems_at = |now_us| {
        node.threads.check_asker(&node.health, now_us);
        node.health.problems().len()
    };
    assert_eq!(problems_at(9_000_000), 0, "it has not started");
    node.threads.ask(9_000_000);
    assert_eq!((problems_at(13_000_000), problems_at(13_000_001)), (0, 1));
    assert!(node.health.is_ready());
    node.threads.ask(14_000_000);
    assert_eq!(problems_at(14_000_000), 0);
}
