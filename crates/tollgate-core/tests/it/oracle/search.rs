//! Finding by asking.

/// Further than anything that ever comes: four times the end of time.
const FAR: i128 = 1 << 55;

/// The first instant from `now` on that passes, if any ever does. What passes once passes ever
/// after.
pub fn first(now: i128, passes: impl Fn(i128) -> bool) -> Option<i128> {
    if passes(now) {
        return Some(now);
    }
    let (mut fails, mut holds) = (now, now + FAR);
    if !passes(holds) {
        return None;
    }
    while holds - fails > 1 {
        let middle = fails + (holds - fails) / 2;
        if passes(middle) { holds = middle } else { fails = middle }
    }
    Some(holds)
}

/// The largest number from zero to `most` that passes, zero being free. What passes, passes for
/// less too.
pub fn largest(most: i128, passes: impl Fn(i128) -> bool) -> i128 {
    let (mut holds, mut fails) = (0, most + 1);
    while fails - holds > 1 {
        let middle = holds + (fails - holds) / 2;
        if passes(middle) { holds = middle } else { fails = middle }
    }
    holds
}
