use super::*;
use tollgate_core::CalendarUnit;

#[test]
fn names_are_those_of_the_iana_in_any_case() {
    let berlin = time_zone("Europe/Berlin").unwrap();
    assert_eq!(berlin.name(), "Europe/Berlin");
    assert!(std::ptr::eq(berlin, time_zone("europe/berlin").unwrap()), "one value for each");
    assert_eq!(Some(Zone::UTC), time_zone("UTC"));
    for unknown in ["", "Mars/Olympus", "Europe/Berln", "CET+1", "UTC+1", "+01:00", "Etc/Unknown"] {
        assert!(time_zone(unknown).is_none(), "{unknown}");
    }
    assert_eq!(nearest("europe/Berln").as_deref(), Some("Europe/Berlin"));
    assert_eq!(nearest("nowhere at all"), None);
}

#[test]
fn every_zone_has_windows_without_gaps_to_the_end_of_time() {
    let names: Vec<String> = DATABASE.available().map(|name| name.as_str().to_owned()).collect();
    assert!(names.len() > 400, "the database is built in");
    for name in names {
        // Skips `Etc/Unknown`, a placeholder in the database.
        let Some(zone) = time_zone(&name) else { continue };
        for unit in [CalendarUnit::Day, CalendarUnit::Week, CalendarUnit::Month] {
            let longest_s = (unit.nominal_us() / 1_000_000) as i64 + 2 * 86_400;
            for at_s in (0..=9_007_199_254).step_by(97_000_003) {
                let span = zone.span(unit, at_s);
                assert!(span.start_s <= at_s && at_s < span.end_s, "{name}");
                assert!(span.end_s - span.start_s <= longest_s, "{name}");
                assert_eq!(zone.span(unit, span.end_s).start_s, span.end_s, "{name}");
                assert_eq!(zone.span(unit, span.start_s), span, "{name}");
            }
        }
    }
}

/// Another program with another database computed the windows: see `windows.py` beside the file.
#[test]
fn windows_are_those_of_another_implementation() {
    let windows = include_str!("../../tests/fixtures/calendar/windows.txt");
    assert!(windows.lines().count() > 1_000);
    for line in windows.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [zone, unit, at, start, end] = words[..] else { panic!("{line}") };
        let unit = match unit {
            "day" => CalendarUnit::Day,
            "week" => CalendarUnit::Week,
            _ => CalendarUnit::Month,
        };
        let span = time_zone(zone).unwrap().span(unit, at.parse().unwrap());
        let expected: (i64, i64) = (start.parse().unwrap(), end.parse().unwrap());
        assert_eq!((span.start_s.max(0), span.end_s), expected, "{line}");
    }
}
