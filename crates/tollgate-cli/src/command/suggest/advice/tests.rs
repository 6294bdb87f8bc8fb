use super::*;

/// Adds `keys` clients with `per_min` requests each, spread evenly over one minute.
fn steady(rates: &mut PeakRates, keys: std::ops::Range<u64>, per_min: u64) {
    for key in keys {
        for n in 0..per_min {
            rates.count(key, 60_000_000 + n * 60_000_000 / per_min, 1);
        }
    }
}

#[test]
fn outliers_are_touched_and_nobody_else() {
    let mut rates = PeakRates::default();
    steady(&mut rates, 0..6_993, 8);
    steady(&mut rates, 7_000..7_020, 40);
    steady(&mut rates, 8_000..8_004, 900);
    let advice = per_client(&rates, ClientKey::User, 1, false);
    assert_eq!((advice.algorithm, advice.rate, advice.burst), ("sliding-window", 50, None));
    assert_eq!(
        advice.reasons[0],
        "99.9 % of users stay under 41 requests/min; 50/min would have touched 4 of 7,017, all above \
         112x the median of 8"
    );
}

#[test]
fn without_outliers_nobody_is_touched() {
    let mut rates = PeakRates::default();
    steady(&mut rates, 0..150, 20);
    let advice = per_client(&rates, ClientKey::Ip, 1, true);
    assert_eq!(advice.rate, 30);
    assert_eq!(
        advice.reasons[0],
        "99 % of addresses stay under 21 requests/min; 30/min would have touched nobody"
    );
}

#[test]
fn bursts_get_a_bucket() {
    let mut rates = PeakRates::default();
    for key in 0..200 {
        for n in 0..60 {
            rates.count(key, 3_600_000_000 + n, 1);
        }
    }
    let advice = per_client(&rates, ClientKey::User, 1, true);
    assert_eq!((advice.algorithm, advice.rate, advice.burst), ("token-bucket", 5, Some(100)));
    let without_hours = per_client(&rates, ClientKey::User, 1, false);
    assert_eq!(without_hours.algorithm, "sliding-window", "an hour was not seen");
}

#[test]
fn slow_endpoints_cost_more() {
    let of = |requests: u64, mean_us: u64| EndpointUse {
        requests,
        timed: requests,
        duration_us: requests * mean_us,
        units: 1,
        ..EndpointUse::default()
    };
    let mut usage = [of(1_000, 10_000), of(100, 30_000), of(50, 270_000), of(3, 9_000_000)];
    unit_costs(&mut usage);
    assert_eq!(usage.map(|usage| usage.units), [1, 1, 25, 1], "three requests say nothing");
}

#[test]
fn round_numbers_are_those_that_people_choose() {
    for (number, up, down) in
        [(1, 1, 1), (7, 7, 7), (11, 12, 10), (84, 100, 80), (101, 120, 100), (999, 1_000, 800)]
    {
        assert_eq!((round_up(number), round_down(number)), (up, down), "{number}");
    }
}
