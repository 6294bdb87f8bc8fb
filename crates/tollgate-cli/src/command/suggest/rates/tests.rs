use super::*;

#[test]
fn peaks_are_those_of_the_busiest_windows() {
    let mut rates = PeakRates::default();
    // Ten requests in one second, then one a second for a minute.
    for n in 0..10 {
        rates.count(1, 60_000_000 + n, 1);
    }
    for n in 0..60 {
        rates.count(1, 120_000_000 + n * 1_000_000, 1);
    }
    rates.count(2, 60_000_000, 3);
    assert_eq!(rates.distribution(SECOND), Distribution(vec![3, 10]));
    assert_eq!(rates.distribution(MINUTE), Distribution(vec![3, 60]));
    assert_eq!(rates.distribution(HOUR), Distribution(vec![3, 70]));
}

#[test]
fn quantiles_are_ranks() {
    let all = Distribution((1..=1_000).collect());
    assert_eq!((all.at(500), all.at(999), all.at(1_000), all.max()), (500, 999, 1_000, 1_000));
    assert_eq!(all.above(997), [998, 999, 1_000]);
    assert_eq!((Distribution::default().at(500), Distribution::default().max()), (0, 0));
    assert_eq!(Distribution(vec![7]).at(1), 7);
}
