//! Binary search over a yes-or-no question.

/// Later than any instant: four times the end of time.
const FAR: i128 = 1 << 55;

/// The first instant from `now` on for which `passes` is true; `None` if there is none. Once true,
/// it stays true.
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

/// The largest number from zero to `most` that passes. Zero passes, and so does every number below
/// one that passes.
pub fn largest(most: i128, passes: impl Fn(i128) -> bool) -> i128 {
    let (mut holds, mut fails) = (0, most + 1);
    while fails - holds > 1 {
        let middle = holds + (fails - holds) / 2;
        if passes(middle) { holds = middle } else { fails = middle }
    }
    holds
}
