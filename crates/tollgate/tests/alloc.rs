//! A check of a known key allocates nothing.

use std::sync::Arc;
use tollgate::{Limiter, ManualClock, Quota};

#[test]
fn no_allocation_for_a_known_key() {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    let quota = Quota::per_second(100).unwrap();
    let limiter = Limiter::builder(quota).clock(clock.clone()).build().unwrap();
    // Until the key is known, and the thread has its room for answers.
    assert!(limiter.check("a key of up to thirty-two bytes").is_admitted());
    let mut outcomes = [0, 0];
    let counted = allocation_counter::measure(|| {
        for _ in 0..2_000 {
            clock.advance(5_000);
            let admitted = limiter.check("a key of up to thirty-two bytes").is_admitted();
            outcomes[usize::from(admitted)] += 1;
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert!(outcomes.iter().all(|&count| count > 100), "both outcomes were seen: {outcomes:?}");
}
