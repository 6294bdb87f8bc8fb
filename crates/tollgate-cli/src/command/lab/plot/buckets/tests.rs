use super::*;
use tollgate_core::MAX_US;

fn total(buckets: &Buckets, series: usize) -> u64 {
    buckets.series(series).map(Count::total).sum()
}

#[test]
fn each_width_divides_the_next() {
    assert!(COUNTED_US.windows(2).all(|pair| pair[1].is_multiple_of(pair[0])));
    assert!(SHOWN_US.is_sorted());
    assert!(MAX_US / COUNTED_US[COUNTED_US.len() - 1] < IN_USE_MAX);
    // For the largest number of buckets, some display width must fit and not be much wider than
    // needed.
    for counted in COUNTED_US {
        let fits =
            |shown: &u64| shown.is_multiple_of(counted) && (10..=20).contains(&(shown / counted));
        assert!(SHOWN_US.iter().any(fits), "{counted}");
    }
}

#[test]
fn nothing_is_lost_however_far_apart_and_out_of_order() {
    let mut buckets = Buckets::new(2);
    let mut seed: u64 = 7;
    for n in 0..10_000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let time_us = (seed >> 11) >> (seed % 40);
        buckets.at(time_us)[0].admitted += 1;
        buckets.at(time_us)[1].refused += n % 2;
        assert!(buckets.len() as u64 <= IN_USE_MAX);
    }
    for buckets in [&buckets, &buckets.for_show()] {
        assert_eq!((total(buckets, 0), total(buckets, 1)), (10_000, 5_000));
    }
    assert!(buckets.for_show().len() as u64 <= SHOWN_MAX);
}

#[test]
fn both_ends_of_time_fit() {
    let mut buckets = Buckets::new(1);
    buckets.at(MAX_US)[0].admitted += 1;
    buckets.at(0)[0].refused += 1;
    let shown = buckets.for_show();
    assert!(buckets.len() as u64 <= IN_USE_MAX && shown.len() as u64 <= SHOWN_MAX);
    assert_eq!(shown.start_us(), 0);
    assert_eq!(shown.series(0).next(), Some(Count { admitted: 0, refused: 1 }));
    assert_eq!(shown.series(0).last(), Some(Count { admitted: 1, refused: 0 }));
}

#[test]
fn buckets_are_aligned_to_the_epoch_and_no_wider_than_needed() {
    let mut buckets = Buckets::new(1);
    for n in 0..100 {
        buckets.at(1_700_000_000_050_000 + n * 100_000)[0].admitted += 1;
    }
    let shown = buckets.for_show();
    assert_eq!((shown.width_us(), shown.start_us()), (100_000, 1_700_000_000_000_000));
    assert!(shown.series(0).all(|count| count.admitted == 1));
}
