use super::*;

#[test]
fn a_node_is_ready_while_it_serves_and_nothing_fatal_is_wrong() {
    let health = Health::default();
    assert!(!health.is_ready(), "not before its listeners are open");
    health.set_serving(true);
    assert!(health.is_ready());
    health.degrade("policy", "line 3 is wrong");
    assert!(health.is_ready(), "the last good policy still serves");
    assert_eq!(health.problems(), [("policy".into(), "line 3 is wrong".into())]);
    health.fail("drain", "going away");
    assert!(!health.is_ready());
    health.clear("drain");
    health.clear("policy");
    assert!(health.is_ready() && health.problems().is_empty());
}

#[test]
fn whoever_watches_hears_of_changes_and_of_nothing_else() {
    let health = Health::default();
    let mut watching = health.watch();
    assert!(!*watching.borrow_and_update());
    health.set_serving(true);
    assert!(watching.has_changed().unwrap() && *watching.borrow_and_update());
    health.degrade("policy", "line 3 is wrong");
    assert!(!watching.has_changed().unwrap());
    health.fail("store", "gone");
    assert!(watching.has_changed().unwrap() && !*watching.borrow_and_update());
    health.fail("worker", "gone");
    health.clear("store");
    assert!(!watching.has_changed().unwrap(), "not ready either way");
    health.clear("worker");
    assert!(watching.has_changed().unwrap() && *watching.borrow_and_update());
}
