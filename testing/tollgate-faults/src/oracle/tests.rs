use super::{Admitted, Bound};

const SECOND_US: u64 = 1_000_000;

/// One unit, decided between these instants.
fn one(sent_us: u64, received_us: u64) -> Admitted {
    Admitted { sent_us, received_us, cost: 1 }
}

fn at(ms: &[u64]) -> Vec<Admitted> {
    ms.iter()
        .map(|ms| one(1_000 * SECOND_US + ms * 1_000, 1_000 * SECOND_US + ms * 1_000))
        .collect()
}

#[test]
fn a_total_counts_costs() {
    let admitted = [Admitted { cost: 3, ..one(0, 1) }, one(5, 6)];
    assert_eq!(Bound::Total(4).excess(&admitted), 0);
    assert_eq!(Bound::Total(3).excess(&admitted), 1);
}

#[test]
fn a_window_counts_what_is_surely_in_it() {
    let bound = Bound::Window { limit: 2, window_us: SECOND_US };
    assert_eq!(bound.excess(&at(&[100, 200, 300])), 1);
    assert_eq!(bound.excess(&at(&[100, 200, 1_300])), 0);
    let mut across = at(&[800, 900]);
    across.push(one(1_000 * SECOND_US + 950_000, 1_001 * SECOND_US + 50_000));
    assert_eq!(bound.excess(&across), 0, "it may have been in the next");
}

#[test]
fn a_sliding_limit_holds_for_any_interval() {
    let bound = Bound::Sliding { limit: 2, window_us: SECOND_US };
    assert_eq!(bound.excess(&at(&[600, 900, 1_500])), 1);
    assert_eq!(bound.excess(&at(&[600, 900, 1_610])), 0);
    let mut long = at(&[600, 900]);
    long.push(one(1_000 * SECOND_US + 950_000, 1_001 * SECOND_US + 700_000));
    assert_eq!(bound.excess(&long), 0, "it may have been late");
}

#[test]
fn a_bucket_allows_its_burst_and_its_rate() {
    let bound = Bound::Bucket { burst: 3, count: 10, period_us: SECOND_US };
    assert_eq!(bound.excess(&at(&[0, 0, 0, 110, 210])), 0);
    assert_eq!(bound.excess(&at(&[0, 0, 0, 0, 0, 0])), 2, "one may have come within the slack");
    let steady: Vec<u64> = (0..100).map(|n| n * 100).collect();
    assert_eq!(bound.excess(&at(&steady)), 0);
    let fast: Vec<u64> = (0..100).map(|n| n * 50).collect();
    assert!(bound.excess(&at(&fast)) > 40);
}
