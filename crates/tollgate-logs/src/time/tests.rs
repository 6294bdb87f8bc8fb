use super::*;

fn at(form: TimeForm, stamp: &str) -> Option<u64> {
    instant(form, stamp, &LogZone::default())
}

#[test]
fn stamps_of_all_forms_name_the_same_instant() {
    let us = Some(1_700_000_000_000_000);
    assert_eq!(at(TimeForm::Clf, "14/Nov/2023:22:13:20 +0000"), us);
    assert_eq!(at(TimeForm::Clf, "15/Nov/2023:03:43:20 +0530"), us);
    assert_eq!(at(TimeForm::Clf, "14/Nov/2023:14:13:20 -0800"), us);
    assert_eq!(at(TimeForm::Clf, "14/Nov/2023:22:13:20.000"), us);
    assert_eq!(at(TimeForm::Iso, "2023-11-14T22:13:20Z"), us);
    assert_eq!(at(TimeForm::Iso, "2023-11-14 23:13:20.000+01:00"), us);
    assert_eq!(at(TimeForm::Seconds, "1700000000.000"), us);
    for stamp in ["1700000000", "1700000000000", "1700000000000000", "1700000000000000000"] {
        assert_eq!(at(TimeForm::Any, stamp), us, "{stamp}");
    }
    assert_eq!(at(TimeForm::Iso, "2023-11-14T22:13:20.1234567Z"), Some(1_700_000_000_123_456));
    assert_eq!(at(TimeForm::Clf, "29/Feb/2000:00:00:00 +0000"), Some(951_782_400_000_000));
}

#[test]
fn stamps_without_a_zone_are_in_the_zone_of_the_log() {
    let zone = LogZone::parse("Europe/Berlin").unwrap();
    let winter = instant(TimeForm::Clf, "14/Nov/2023:23:13:20.000", &zone);
    let summer = instant(TimeForm::Iso, "2023-07-14T10:00:00", &zone);
    assert_eq!(winter, Some(1_700_000_000_000_000));
    assert_eq!(summer, at(TimeForm::Iso, "2023-07-14T08:00:00Z"));
    assert!(LogZone::parse("Europe/Nowhere").is_err());
}

#[test]
fn what_is_no_instant_is_none() {
    for stamp in [
        "",
        "31/Feb/2023:22:13:20 +0000",
        "14/Foo/2023:22:13:20 +0000",
        "14/Nov/2023:24:13:20 +0000",
        "14/Nov/2023:22:13:20 +9999",
        "14/Nov/2023:22:13:20 +0060",
        "14/Nov/1969:22:13:20 +0000",
        "2023-11-14T22:13Z",
        "2023-11-14T22:13:20+1",
        "9999-11-14T22:13:20Z",
        "99999999999999999999999",
        "-1",
        "1e400",
    ] {
        assert_eq!(at(TimeForm::Any, stamp), None, "{stamp}");
    }
}

#[test]
fn numbers_are_read_from_their_digits() {
    for (text, unit_ns, us) in [
        ("0.000929675", 1_000_000_000, Some(929)),
        ("9.3e-5", 1_000_000_000, Some(93)),
        ("1.5E3", 1_000, Some(1_500)),
        ("12", 1_000_000, Some(12_000)),
        ("61537", 1, Some(61)),
        ("5e-400", 1_000_000_000, Some(0)),
        ("-1", 1_000_000_000, None),
        (".", 1, None),
        ("1e99999999999", 1, None),
        ("99999999999999999999", 1, None),
    ] {
        assert_eq!(decimal_us(text, unit_ns), us, "{text}");
    }
}
