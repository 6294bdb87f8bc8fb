use super::{QUEUE_MAX, READERS_MAX, TailFilter, TailVerdict};
use crate::tests::TestNode;
use std::path::Path;

const POLICY: &str = "
limits:
  - {name: login, keys: [[ip, user], [ip]], rate: 2/min}
  - {name: logins, key: [user], rate: 2/min}
";

/// Decides one request of each user per round.
fn run(node: &TestNode, users: &[&str], rounds: usize) {
    for _ in 0..rounds {
        for user in users {
            node.check(60_000_000, &[("user", user), ("ip", "203.0.113.9")], 1);
        }
    }
}

#[test]
fn a_reader_gets_what_its_filter_accepts() {
    let node = TestNode::in_folder(Path::new(""), POLICY);
    let tail = &node.tail;
    let limit = |name: &str| TailFilter { limit: Some(name.into()), ..TailFilter::default() };
    let all = tail.read(TailFilter::default()).unwrap();
    let entry = tail.read(limit("login")).unwrap();
    let one = tail.read(limit("login/ip")).unwrap();
    let refused = TailFilter { is_refused_only: true, ..limit("logins") };
    let refused = tail.read(refused).unwrap();
    let attributes = vec![("user".into(), "b".into())];
    let user = tail.read(TailFilter { attributes, ..TailFilter::default() }).unwrap();
    run(&node, &["a", "b"], 3);
    let count = |reader: &super::TailReader| reader.take().0.len();
    // Two of the six requests are admitted; `login/ip` refuses the others.
    assert_eq!((count(&all), count(&entry), count(&one)), (18, 12, 6));
    assert_eq!(count(&refused), 0);
    let (decisions, skipped) = user.take();
    assert_eq!((decisions.len(), skipped), (6, 0));
    assert!(decisions.iter().all(|one| &*one.limit != "login/ip"));
    drop((all, entry, one, refused));
    assert_eq!(tail.reader_count(), 1);
}

#[test]
fn a_reader_that_never_reads_holds_no_more_than_its_queue() {
    let node = TestNode::in_folder(Path::new(""), POLICY);
    let tail = &node.tail;
    let reader = tail.read(TailFilter::default()).unwrap();
    run(&node, &["a"], QUEUE_MAX);
    let (decisions, skipped) = reader.take();
    assert_eq!((decisions.len(), skipped), (QUEUE_MAX, 2 * QUEUE_MAX as u64));
    assert_eq!(decisions[0].verdict, TailVerdict::Admitted);
    assert_eq!(reader.take().1, 0);
}

#[test]
fn readers_are_bounded_and_leave() {
    let node = TestNode::in_folder(Path::new(""), POLICY);
    let tail = &node.tail;
    let readers: Vec<_> =
        (0..READERS_MAX).filter_map(|_| tail.read(TailFilter::default())).collect();
    assert_eq!(readers.len(), READERS_MAX);
    assert!(tail.read(TailFilter::default()).is_none());
    drop(readers);
    assert_eq!(tail.reader_count(), 0);
    assert!(tail.read(TailFilter::default()).is_some());
}

#[test]
fn a_sample_has_its_share_of_any_run_of_decisions() {
    let filter = TailFilter { sample_ppm: 10_000, ..TailFilter::default() };
    for start in [0, 1 << 20, 1 << 40] {
        let shown = (start..start + 100_000).filter(|number| filter.samples(*number)).count();
        assert!((900..1_100).contains(&shown), "{shown}");
    }
    let all = TailFilter::default();
    assert!((0..1_000).all(|number| all.samples(number)));
}
