use super::{PackedState, WordsTaken, unpack_any};
use crate::memory::table::is_inline;
use proptest::prelude::*;
use tollgate_core::algorithm::{
    CalendarWindow, DatedTat, FixedWindow, Gcra, LeakyBucket, SlidingWindow, Tat, TokenBucket,
    calendar_window, fixed_window, sliding_window, token_bucket,
};
use tollgate_core::{Algorithm, CalendarUnit, Intent, LimitParams, MAX_US, Rate, Zone};

/// What is packed comes back as it was; the top bit stays clear.
fn exact<A: PackedState<W>, const W: usize>(algorithm: &A, state: &A::State) -> bool {
    let Some(words) = algorithm.pack(state) else {
        return false;
    };
    assert!(is_inline(words[0]), "{state:?} looks spilled");
    assert_eq!(&algorithm.unpack(words), state, "{words:x?}");
    true
}

fn rate() -> impl Strategy<Value = Rate> {
    let count = prop_oneof![1..100_u64, 1..=u64::from(u32::MAX)];
    let period_us = prop_oneof![
        Just(1_000_u64),
        Just(1_000_000),
        Just(60_000_000),
        Just(86_400_000_000),
        1_000..=31_622_400_000_000_u64
    ];
    (count, period_us).prop_map(|(count, period_us)| Rate::try_new(count, period_us).unwrap())
}

fn instant() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..=MAX_US,
        Just(MAX_US),
        Just(0),
        Just(MAX_US + 1),
        1_700_000_000_000_000..1_700_000_100_000_000_u64
    ]
}

fn count() -> impl Strategy<Value = u64> {
    (0..=53_u32, any::<u64>()).prop_map(|(bits, n)| n & ((1 << bits) - 1))
}

fn tat(count: u32) -> impl Strategy<Value = Tat> {
    let fraction = prop_oneof![Just(0), 0..1_200_u32, any::<u32>()];
    (instant(), fraction, prop_oneof![Just(count), any::<u32>()]).prop_map(
        |(us, fraction, count)| Tat { us, fraction, count: if fraction == 0 { 0 } else { count } },
    )
}

proptest! {
    #[test]
    fn buckets_are_exact((rate, tat, latest_us) in rate().prop_flat_map(|r| (Just(r), tat(r.count()), instant()))) {
        if let (Ok(gcra), Ok(leaky)) = (Gcra::try_new(rate, Some(1)), LeakyBucket::try_new(rate, None, None)) {
            let scale = gcra.bucket().scale();
            let small = tat.us <= MAX_US && u64::from(tat.fraction) < scale && scale <= 1_024;
            let fits = small && (tat.fraction == 0 || tat.count == rate.count());
            let ahead_us = if tat.us == 0 { 0 } else { gcra.bucket().ahead_us() };
            let state = DatedTat { tat, ahead_us };
            prop_assert_eq!(exact(&gcra, &state), fits);
            prop_assert_eq!(exact(&leaky, &state), fits);
            prop_assert!(!exact(&gcra, &DatedTat { ahead_us: ahead_us + 1, ..state }), "a debt");
        }
        if let Ok(token) = TokenBucket::try_new(rate, Some(1)) {
            exact(&token, &token_bucket::State { full: tat, latest_us });
        }
    }

    /// Words are taken as their states are, also if a clock error dated them far ahead.
    #[test]
    fn words_of_buckets_are_taken_exactly(
        count in 1..2_000_u64,
        period_us in prop_oneof![Just(1_000_u64), Just(1_000_000), Just(3_600_000_000), 1_000..90_000_000_000_u64],
        burst in 1..50_u64,
        now_us in instant(),
        offset_us in prop_oneof![0..3_000_000_u64, 0..100_000_000_000_u64],
        fraction: u32,
        cost in 0..60_u64,
    ) {
        let Ok(gcra) = Gcra::try_new(Rate::try_new(count, period_us).unwrap(), Some(burst)) else { return Ok(()) };
        let bucket = gcra.bucket();
        let fraction = fraction % bucket.scale() as u32;
        let count = if fraction == 0 { 0 } else { bucket.count() };
        let tat = Tat { us: (now_us + offset_us).saturating_sub(1_500_000).min(MAX_US), fraction, count };
        let ahead_us = if tat.us == 0 { 0 } else { bucket.ahead_us() };
        let mut state = DatedTat { tat, ahead_us };
        let Some(words) = gcra.pack(&state) else { return Ok(()) };
        let Some(taken) = gcra.take_words(words, now_us, cost) else { return Ok(()) };
        prop_assert!(!gcra.redate(&mut state, now_us));
        let expected = gcra.decide(&state, now_us, cost, Intent::Take);
        match taken {
            WordsTaken::Charged(words, outcome, receipt) => {
                prop_assert_eq!(outcome, expected);
                prop_assert_eq!(receipt, gcra.charge(&mut state, now_us, cost));
                prop_assert_eq!(gcra.unpack(words), state);
            }
            WordsTaken::Refused(outcome) => prop_assert_eq!(outcome, expected),
        }
    }

    #[test]
    fn windows_are_exact(rate in rate(), index in count(), previous in count(), current in count()) {
        exact(&FixedWindow::new(rate), &fixed_window::State { index, count: current });
        exact(&SlidingWindow::new(rate), &sliding_window::State { index, previous, current });
    }

    #[test]
    fn calendar_windows_are_exact(start_s in count(), count in count()) {
        let window = CalendarWindow::new(5, CalendarUnit::Month, Zone::UTC);
        let fits = start_s < 1 << 34 && count < 1 << 29;
        prop_assert_eq!(exact(&window, &calendar_window::State { start_s, count }), fits);
    }

    /// The usual states do fit: no limit of everyday size lives in the slab.
    #[test]
    fn everyday_states_fit(count in 1..10_000_u64, period_us in prop_oneof![Just(1_000_000_u64), Just(60_000_000), Just(3_600_000_000)], cost in 1..100_u64) {
        let rate = Rate::try_new(count, period_us).unwrap();
        let now_us = 1_700_000_000_123_456;
        let mut state = fixed_window::State::default();
        FixedWindow::new(rate).charge(&mut state, now_us, cost);
        prop_assert!(exact(&FixedWindow::new(rate), &state));
        let mut state = sliding_window::State::default();
        SlidingWindow::new(rate).charge(&mut state, now_us, cost);
        prop_assert!(exact(&SlidingWindow::new(rate), &state));
        let token = TokenBucket::try_new(rate, None).unwrap();
        let mut state = token_bucket::State::default();
        token.charge(&mut state, now_us, cost);
        prop_assert!(exact(&token, &state));
        let gcra = Gcra::try_new(rate, None).unwrap();
        let mut state = DatedTat::default();
        gcra.charge(&mut state, now_us, cost.min(count));
        prop_assert_eq!(exact(&gcra, &state), gcra.bucket().scale() <= 1_024);
    }
}

#[test]
fn words_of_another_algorithm_are_a_new_key() {
    let rate = Rate::try_new(10, 1_000_000).unwrap();
    let log = LimitParams::SlidingLog(tollgate_core::algorithm::SlidingLog::new(rate));
    assert_eq!(unpack_any(&log, &[7]), tollgate_core::LimitState::New);
    let gcra = LimitParams::Gcra(Gcra::try_new(rate, None).unwrap());
    assert_eq!(unpack_any(&gcra, &[7, 7]), tollgate_core::LimitState::New);
}
