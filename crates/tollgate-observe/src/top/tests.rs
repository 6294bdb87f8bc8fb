use super::{TopMeasure, TopWindow};
use crate::tests::TestNode;
use std::collections::BTreeMap;
use std::path::Path;

const POLICY: &str = "
limits:
  - {name: per-user, key: [user], rate: 10/min, algorithm: fixed-window, show_keys: true}
  - {name: wide, key: [ip], rate: 1000000/min, show_keys: true}
  - {name: watched, key: [user], rate: 3/min, algorithm: fixed-window, mode: shadow}
";
const NOW_US: u64 = 1_700_000_040_000_000;

/// The top users of a limit: name, units and error.
fn top(node: &TestNode, limit: &str, by: TopMeasure) -> Vec<(String, u64, u64)> {
    let rules = node.gate.rules();
    let limit_of = |name: &str| {
        let limits = rules.policy().limits().iter();
        limits.into_iter().find(|limit| *limit.name == *name).unwrap()
    };
    let tops = node.top.read(NOW_US, by, TopWindow::Minute, Some(limit));
    let keys = tops.iter().flat_map(|top| top.keys.iter().map(|key| (&top.limit, key)));
    keys.map(|(name, one)| {
        let values = limit_of(name).key_values(one.key.key_index as usize, &one.key.bytes);
        (values[0].1.to_string(), one.units, one.error)
    })
    .collect()
}

#[test]
fn units_count_by_what_became_of_them() {
    let node = TestNode::in_folder(Path::new(""), POLICY);
    for (user, requests) in [("a", 12), ("b", 9), ("c", 1)] {
        for _ in 0..requests {
            node.check(NOW_US, &[("user", user), ("ip", "203.0.113.9")], 1);
        }
    }
    assert!(!node.check(NOW_US, &[("user", "c"), ("ip", "203.0.113.9")], 50));
    let named = |name: &str, units| (name.to_owned(), units, 0);
    let by = |measure| top(&node, "per-user", measure);
    assert_eq!(by(TopMeasure::Admitted), [named("a", 10), named("b", 9), named("c", 1)]);
    assert_eq!(by(TopMeasure::Refused), [named("c", 50), named("a", 2)]);
    // From the ninth request on, less than a fifth is left.
    assert_eq!(by(TopMeasure::Near), [named("a", 2), named("b", 1)]);
    let watched = top(&node, "watched", TopMeasure::Shadow);
    assert_eq!(watched.len(), 3);
    // A request that another limit refused was not admitted here.
    assert_eq!(top(&node, "wide", TopMeasure::Admitted), [named("203.0.113.9", 20)]);
    assert_eq!(node.top.missed(), 0);
}

#[test]
fn threads_count_in_shards_and_readers_lose_nothing_that_is_not_said() {
    let node = TestNode::in_folder(Path::new(""), POLICY);
    let users: Vec<String> = (0..40).map(|user| format!("u{user}")).collect();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (node, users) = (&node, &users);
            scope.spawn(move || {
                for round in 0..2_000_usize {
                    let user = &users[(round * 7 + thread) % users.len()];
                    let ip = format!("10.0.0.{}", user.len());
                    node.check(NOW_US, &[("user", user), ("ip", &ip)], 1);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..50 {
                node.top.read(NOW_US, TopMeasure::Admitted, TopWindow::Hour, None);
            }
        });
    });
    let total: u64 = [TopMeasure::Admitted, TopMeasure::Refused]
        .into_iter()
        .flat_map(|by| node.top.read(NOW_US, by, TopWindow::Hour, Some("per-user")))
        .map(|top| top.total_units)
        .sum();
    assert!(total <= 8_000 && total + node.top.missed() >= 8_000, "{total}");
}

#[test]
fn summaries_are_capped() {
    let limits: String =
        (0..200).map(|n| format!("  - {{name: l{n}, key: [user], rate: 10/min}}\n")).collect();
    let node = TestNode::in_folder(Path::new(""), &format!("limits:\n{limits}"));
    node.check(NOW_US, &[("user", "a")], 1);
    let tops = node.top.read(NOW_US, TopMeasure::Admitted, TopWindow::Hour, None);
    assert_eq!(tops.len(), super::SUMMARIES_MAX);
    assert_eq!(node.top.missed(), 72);
    // An hour later no limit is tracked, so new limits can be.
    let later_us = NOW_US + 4_300_000_000;
    assert!(node.top.read(later_us, TopMeasure::Admitted, TopWindow::Hour, None).is_empty());
    node.check(later_us, &[("user", "a")], 1);
    let tops = node.top.read(later_us, TopMeasure::Admitted, TopWindow::Hour, Some("l0"));
    assert_eq!(tops.len(), 1);
}

#[test]
fn the_tick_collects_every_ten_seconds() {
    let node = TestNode::in_folder(Path::new(""), POLICY);
    let mut exact = BTreeMap::new();
    for second in 0..180 {
        let now_us = NOW_US + second * 1_000_000;
        node.top.tick(now_us);
        node.check(now_us, &[("ip", "203.0.113.9")], 1 + second);
        exact.insert(second, 1 + second);
    }
    let now_us = NOW_US + 179 * 1_000_000;
    let tops = node.top.read(now_us, TopMeasure::Admitted, TopWindow::Minute, Some("wide"));
    // The window is the current slot and six before it. A shard is emptied up to a tick after its
    // slot ends.
    let within: u64 = exact.iter().filter(|(second, _)| **second >= 110).map(|(_, n)| n).sum();
    let slack: u64 = exact.iter().filter(|(second, _)| **second >= 100).map(|(_, n)| n).sum();
    assert!((within..=slack).contains(&tops[0].total_units), "{}", tops[0].total_units);
}
