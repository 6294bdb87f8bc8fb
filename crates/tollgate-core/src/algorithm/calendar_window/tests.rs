use super::*;
use crate::algorithm::FixedWindow;
use crate::algorithm::fixed_window;
use crate::{OffsetChange, Rate};

static BERLIN: Zone = Zone::new(
    "Europe/Berlin",
    3_600,
    &[
        OffsetChange { from_s: 1_774_746_000, offset_s: 7_200 },
        OffsetChange { from_s: 1_792_890_000, offset_s: 3_600 },
    ],
);
/// 2026-03-29 00:00 in Berlin; that day has 23 hours.
const SHORT_DAY_S: u64 = 1_774_738_800;
const HOUR_S: u64 = 3_600;

fn per_day(limit: u32) -> CalendarWindow {
    CalendarWindow::new(limit, CalendarUnit::Day, &BERLIN)
}

fn us(seconds: u64) -> u64 {
    seconds * SECOND_US
}

#[test]
fn a_short_day_ends_an_hour_early() {
    let (limit, mut state) = (per_day(3), State::default());
    let first = limit.decide(&state, us(SHORT_DAY_S), 3, Intent::Take);
    assert_eq!((first.admitted, first.reset_after_us), (true, us(23 * HOUR_S)));
    limit.charge(&mut state, us(SHORT_DAY_S), 3);
    let noon_us = us(SHORT_DAY_S + 12 * HOUR_S);
    let refused = limit.decide(&state, noon_us, 1, Intent::Take);
    assert_eq!((refused.admitted, refused.retry_after_us), (false, Some(us(11 * HOUR_S))));
    let next_us = us(SHORT_DAY_S + 23 * HOUR_S);
    assert!(!limit.decide(&state, next_us - 1, 1, Intent::Take).admitted);
    assert!(limit.decide(&state, next_us, 3, Intent::Take).admitted);
    assert_eq!(limit.idle_at_us(&state), next_us);
}

#[test]
fn the_window_shown_is_always_the_same() {
    for (unit, days) in [(CalendarUnit::Day, 1), (CalendarUnit::Week, 7), (CalendarUnit::Month, 31)]
    {
        let limit = CalendarWindow::new(5, unit, &BERLIN);
        assert_eq!(limit.window_us(), Some(us(days * 24 * HOUR_S)));
    }
}

#[test]
fn a_give_back_is_for_its_own_day() {
    let (limit, mut state) = (per_day(5), State::default());
    let receipt = limit.charge(&mut state, us(SHORT_DAY_S), 5);
    limit.give_back(&mut state, us(SHORT_DAY_S + 23 * HOUR_S) - 1, 2, &receipt);
    assert_eq!(state.count, 3);
    limit.give_back(&mut state, us(SHORT_DAY_S + 23 * HOUR_S), 2, &receipt);
    assert_eq!(state.count, 3, "the day is over");
}

#[test]
fn a_clock_that_steps_back_stays_in_the_states_day() {
    let (limit, mut state) = (per_day(5), State::default());
    let next_s = SHORT_DAY_S + 23 * HOUR_S;
    limit.charge(&mut state, us(next_s + 10), 4);
    let outcome = limit.decide(&state, us(next_s - 5), 2, Intent::Peek);
    assert_eq!((outcome.admitted, outcome.remaining), (false, 1));
    assert_eq!(outcome.retry_after_us, Some(us(5 + 24 * HOUR_S)));
    let receipt = limit.charge(&mut state, us(next_s - 5), 1);
    assert_eq!(receipt.at_us, us(next_s), "counted at the start of the state's day");
    assert_eq!(state, State { start_s: next_s, count: 5 });
    limit.give_back(&mut state, us(next_s - 5), 1, &receipt);
    assert_eq!(state.count, 4);
}

#[test]
fn a_leap_ahead_is_taken_to_be_one_day() {
    let (limit, mut state) = (per_day(5), State::default());
    limit.charge(&mut state, us(SHORT_DAY_S + 900 * 24 * HOUR_S), 5);
    assert!(limit.redate(&mut state, us(SHORT_DAY_S)));
    assert_eq!(state, State { start_s: SHORT_DAY_S + 23 * HOUR_S, count: 5 });
    assert!(!limit.redate(&mut state, us(SHORT_DAY_S)));
}

#[test]
fn counts_survive_rules_that_move_the_start_of_the_day() {
    // The state was written under rules by which the day began an hour later.
    let (limit, mut state) = (per_day(5), State { start_s: SHORT_DAY_S + HOUR_S, count: 4 });
    assert_eq!(limit.decide(&state, us(SHORT_DAY_S + 2 * HOUR_S), 1, Intent::Take).remaining, 0);
    limit.charge(&mut state, us(SHORT_DAY_S + 2 * HOUR_S), 1);
    assert_eq!(state, State { start_s: SHORT_DAY_S, count: 5 });
}

#[test]
fn three_known_windows_decide_as_the_zone_does() {
    for unit in [CalendarUnit::Day, CalendarUnit::Week, CalendarUnit::Month] {
        let limit = CalendarWindow::new(5, unit, &BERLIN);
        for day in 0..400 {
            let now_us = us(SHORT_DAY_S - 30 * 86_400 + day * 80_000 + 1_234);
            let known = limit.resolve_windows(now_us);
            assert!(known.zone().is_none());
            let (start_s, end_s) = limit.window(now_us / SECOND_US);
            for at_s in [start_s, end_s - 1, start_s - 1, end_s, limit.window(end_s).1 - 1] {
                assert_eq!(known.window(at_s), limit.window(at_s), "{unit:?} at {at_s}");
            }
            assert_eq!(known.resolve_windows(now_us + 1), known, "known windows stay");
        }
    }
}

#[test]
fn beyond_what_is_known_windows_go_on_without_a_gap() {
    for known in [
        per_day(5).resolve_windows(us(SHORT_DAY_S)),
        per_day(5).resolve_windows(0),
        per_day(5).resolve_windows(MAX_US),
    ] {
        for at_s in (0..40).map(|day| SHORT_DAY_S - 20 * 86_400 + day * 86_400) {
            let (start_s, end_s) = known.window(at_s);
            assert!(start_s <= at_s && at_s < end_s);
            assert_eq!(known.window(end_s).0, end_s);
        }
        let (start_s, end_s) = known.window(0);
        assert!(start_s == 0 && end_s > 0);
    }
}

#[test]
fn what_was_never_known_is_not_read() {
    let of = |known| CalendarWindow::from_resolved(5, CalendarUnit::Day, known);
    assert_eq!(of([0; 4]), None);
    assert_eq!(of([1, 0, 1, 1]), None);
    assert_eq!(of([1, 1, 1, 0]), None);
    assert_eq!(of([u64::MAX, 1, 1, 1]), None);
    assert_eq!(of([1, 1 << 40, 1, 1]), None);
    let known = per_day(5).resolve_windows(us(SHORT_DAY_S));
    assert_eq!(of(known.resolved_windows()), Some(known));
}

/// Days of UTC are windows of 24 hours aligned to the epoch, so every step must equal that of a
/// fixed window.
#[test]
fn days_of_utc_are_fixed_windows() {
    const DAY_US: u64 = 86_400 * SECOND_US;
    let calendar = CalendarWindow::new(7, CalendarUnit::Day, Zone::UTC);
    let fixed = FixedWindow::new(Rate::try_new(7, DAY_US).unwrap());
    for seed in 1..200_u64 {
        let mut random = seed;
        let mut next = |most: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % most
        };
        let (mut ours, mut theirs) = (State::default(), fixed_window::State::default());
        let mut now_us: u64 = if seed % 9 == 0 { MAX_US - 3 * DAY_US } else { 5 * DAY_US };
        let mut receipts = std::vec::Vec::new();
        for _ in 0..60 {
            now_us = match next(8) {
                0 => now_us + next(DAY_US),
                1 => now_us.saturating_sub(next(3 * DAY_US)),
                2 => now_us.next_multiple_of(DAY_US),
                3 => now_us.next_multiple_of(DAY_US).saturating_sub(1),
                4 => now_us + next(20) * DAY_US,
                _ => now_us,
            };
            assert_eq!(calendar.redate(&mut ours, now_us), fixed.redate(&mut theirs, now_us));
            let cost = next(9);
            let outcome = calendar.decide(&ours, now_us, cost, Intent::Take);
            assert_eq!(outcome, fixed.decide(&theirs, now_us, cost, Intent::Take));
            if outcome.admitted || next(9) == 0 {
                let receipt = calendar.charge(&mut ours, now_us, cost);
                assert_eq!(receipt, fixed.charge(&mut theirs, now_us, cost));
                receipts.push(receipt);
            } else if let Some(receipt) = receipts.pop() {
                calendar.give_back(&mut ours, now_us, 1, &receipt);
                fixed.give_back(&mut theirs, now_us, 1, &receipt);
            }
            assert_eq!((ours.start_s / 86_400, ours.count), (theirs.index, theirs.count));
            assert_eq!(calendar.idle_at_us(&ours), fixed.idle_at_us(&theirs));
        }
    }
}
