use super::*;
use proptest::prelude::*;

fn key(name: &str, units: u64, error: u64, last: &str) -> TopKeyView {
    let key = ShownKey(vec![("user".into(), name.to_owned())]);
    TopKeyView { key, units, error, limit: 100, remaining: 100 - units.min(100), last: last.into() }
}

fn limit(units: u64, unlisted_max: u64, keys: Vec<TopKeyView>) -> TopLimitView {
    TopLimitView { name: "per-user".into(), units, unlisted_max, keys }
}

#[test]
fn a_key_that_a_node_does_not_list_may_have_units_there() {
    let merged = merge(vec![
        vec![limit(100, 0, vec![key("a", 60, 0, "1"), key("b", 40, 0, "1")])],
        vec![limit(50, 7, vec![key("a", 30, 5, "2")])],
    ]);
    // `b` has up to seven units on the second node.
    let expected = vec![key("a", 90, 5, "2"), key("b", 47, 7, "1")];
    let [merged] = &merged[..] else { panic!("{merged:?}") };
    assert_eq!((merged.units, merged.unlisted_max), (150, 7));
    let bounds = |key: &TopKeyView| (key.key.to_string(), key.units, key.error, key.last.clone());
    let bounds = |keys: &[TopKeyView]| keys.iter().map(bounds).collect::<Vec<_>>();
    assert_eq!(bounds(&merged.keys), bounds(&expected));
    assert_eq!(merged.keys[0].remaining, 70, "the later decision counts");
}

#[test]
fn a_list_that_is_cut_says_how_much_it_hides() {
    let mut list = limit(100, 3, vec![key("a", 60, 0, "1"), key("b", 40, 0, "1")]);
    list.truncate(1);
    assert_eq!((list.keys.len(), list.unlisted_max), (1, 40));
    list.truncate(1);
    assert_eq!(list.unlisted_max, 40);
}

#[test]
fn a_report_survives_the_store() {
    let limits = vec![limit(60, 1, vec![key("a", 60, 0, "1")])];
    let list = TopList { from: "0".into(), limits: limits.clone() };
    let lists = BTreeMap::from([("1m/refused".to_owned(), list)]);
    let text = serde_json::to_vec(&TopReport { to: "2".into(), missed: 3, lists }).unwrap();
    let read: TopReport = serde_json::from_slice(&text).unwrap();
    assert_eq!(read.lists["1m/refused"].limits, limits);
}

proptest! {
    /// Each node counts exactly, but lists only its first keys.
    #[test]
    fn bounds_hold_for_every_key(
        nodes in prop::collection::vec(prop::collection::vec(0_u64..50, 6), 1..5),
        kept in 0_usize..6,
        shown in 1_usize..6,
    ) {
        let list = |counts: &Vec<u64>| {
            let keys = counts.iter().enumerate().filter(|(_, units)| **units > 0);
            let mut keys: Vec<_> = keys.map(|(n, units)| key(&n.to_string(), *units, 0, "1")).collect();
            keys.sort_by_key(|key| std::cmp::Reverse(key.units));
            let mut list = limit(counts.iter().sum(), 0, keys);
            list.truncate(kept);
            vec![list]
        };
        let mut merged = merge(nodes.iter().map(list).collect());
        prop_assert_eq!(merged.len(), 1);
        merged[0].truncate(shown);
        let total = |n: usize| nodes.iter().map(|counts| counts[n]).sum::<u64>();
        prop_assert_eq!(merged[0].units, (0..6).map(total).sum::<u64>());
        for n in 0..6 {
            let name = format!("user={n}");
            match merged[0].keys.iter().find(|key| key.key.to_string() == name) {
                Some(key) => prop_assert!(
                    key.units - key.error <= total(n) && total(n) <= key.units,
                    "{key:?} and {}", total(n)
                ),
                None => prop_assert!(total(n) <= merged[0].unlisted_max),
            }
        }
    }
}
