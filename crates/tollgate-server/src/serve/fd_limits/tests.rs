use super::divide;

#[test]
fn all_connections_together_leave_descriptors_for_the_rest() {
    for descriptors in [32, 64, 256, 1024, 4096, 20_000, 1 << 20, u64::MAX] {
        for fronts in 1..6 {
            let (traffic, admin) = divide(descriptors, 128, 10_000, fronts);
            let all = u128::from(traffic) * u128::from(fronts) + u128::from(admin);
            let rest = u128::from(descriptors) - all;
            assert!(rest >= u128::from(descriptors / 2).min(128), "{descriptors} {fronts}");
            assert!(traffic > 0 && admin > 0);
        }
    }
}

#[test]
fn whoever_has_enough_gets_all_that_is_wanted() {
    assert_eq!(divide(20_000, 128, 10_000, 1), (10_000, 256));
    assert_eq!(divide(u64::MAX, 128, 10_000, 5), (10_000, 256));
    assert_eq!(divide(1024, 128, 10_000, 1), (1024 - 128 - 128, 128));
}
