use super::*;
use std::vec::Vec;

/// Berlin around two changes of its offset: 2026-03-29 and 2026-10-25.
static BERLIN: Zone = Zone::new(
    "Europe/Berlin",
    3_600,
    &[
        OffsetChange { from_s: 1_774_746_000, offset_s: 7_200 },
        OffsetChange { from_s: 1_792_890_000, offset_s: 3_600 },
    ],
);
/// Apia skipped 2011-12-30.
static APIA: Zone =
    Zone::new("Pacific/Apia", -36_000, &[OffsetChange { from_s: 1_325_239_200, offset_s: 50_400 }]);
/// At 00:01 on 2006-10-29, St. John's went back to 23:01 of the day before.
static ST_JOHNS: Zone = Zone::new(
    "America/St_Johns",
    -9_000,
    &[OffsetChange { from_s: 1_162_089_060, offset_s: -12_600 }],
);

fn hours(zone: &Zone, unit: CalendarUnit, at_s: i64) -> i64 {
    let span = zone.span(unit, at_s);
    assert!((span.start_s..span.end_s).contains(&at_s));
    (span.end_s - span.start_s) / 3_600
}

#[test]
fn a_day_has_23_or_25_hours_when_clocks_change() {
    assert_eq!(hours(&BERLIN, CalendarUnit::Day, 1_774_746_000), 23);
    assert_eq!(hours(&BERLIN, CalendarUnit::Day, 1_774_746_000 - 86_400), 24);
    assert_eq!(hours(&BERLIN, CalendarUnit::Day, 1_792_890_000), 25);
    assert_eq!(hours(&BERLIN, CalendarUnit::Week, 1_774_746_000), 167);
    assert_eq!(hours(&BERLIN, CalendarUnit::Month, 1_774_746_000), 31 * 24 - 1);
    assert_eq!(hours(&BERLIN, CalendarUnit::Month, 1_792_890_000), 31 * 24 + 1);
}

#[test]
fn a_skipped_day_has_no_window() {
    let day = APIA.span(CalendarUnit::Day, 1_325_239_199);
    assert_eq!(day, CalendarSpan { start_s: 1_325_239_200 - 86_400, end_s: 1_325_239_200 });
    let next = APIA.span(CalendarUnit::Day, 1_325_239_200);
    assert_eq!(next, CalendarSpan { start_s: 1_325_239_200, end_s: 1_325_239_200 + 86_400 });
}

#[test]
fn an_hour_that_comes_twice_across_midnight_belongs_to_the_new_day() {
    let midnight_s = 1_162_089_000;
    let before = ST_JOHNS.span(CalendarUnit::Day, midnight_s - 1);
    assert_eq!(before.end_s, midnight_s);
    let new = CalendarSpan { start_s: midnight_s, end_s: midnight_s + 90_000 };
    for at_s in [midnight_s, midnight_s + 59, midnight_s + 60, midnight_s + 3_659, new.end_s - 1] {
        assert_eq!(ST_JOHNS.span(CalendarUnit::Day, at_s), new, "at {at_s}");
    }
}

#[test]
fn months_have_the_days_of_the_gregorian_calendar() {
    let days = |year: i64| -> Vec<i64> {
        let starts = (1..=12).map(|month| first_of(year, month)).chain([first_of(year + 1, 1)]);
        starts.collect::<Vec<_>>().windows(2).map(|pair| pair[1] - pair[0]).collect()
    };
    for year in 1969..=2260 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let february = if leap { 29 } else { 28 };
        assert_eq!(days(year), [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], "{year}");
    }
    assert_eq!(first_of(1970, 1), 0);
    for day in -800..110_000 {
        let (year, month) = month_of(day);
        let next = if month == 12 { first_of(year + 1, 1) } else { first_of(year, month + 1) };
        let first = first_of(year, month);
        assert!((first..next).contains(&day), "day {day}");
        assert_eq!(days_from_civil(year, month, day - first + 1), Some(day));
        assert_eq!(days_from_civil(year, month, next - first + 1), None);
    }
    let none = [(2026, 0, 1), (2026, 13, 1), (2026, 1, 0)];
    assert!(none.into_iter().all(|(year, month, day)| days_from_civil(year, month, day).is_none()));
}

#[test]
fn weeks_begin_on_monday() {
    // 2026-11-16 was a Monday.
    let monday_s = 1_794_787_200;
    let week = CalendarSpan { start_s: monday_s, end_s: monday_s + 604_800 };
    assert_eq!(Zone::UTC.span(CalendarUnit::Week, monday_s), week);
    assert_eq!(Zone::UTC.span(CalendarUnit::Week, monday_s + 604_799), week);
    assert_eq!(Zone::UTC.span(CalendarUnit::Week, monday_s - 1).end_s, monday_s);
}
