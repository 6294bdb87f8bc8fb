use super::*;
use crate::settings::RedisUrl;
use tollgate_core::CalendarUnit;
use tollgate_core::written_rate::WrittenRate;

#[test]
fn rates_follow_the_grammar() {
    let per = |count, period_us| Ok(WrittenRate::Per { count, period_us, unit: None });
    let of = |count, unit: CalendarUnit| {
        Ok(WrittenRate::Per { count, period_us: unit.nominal_us(), unit: Some(unit) })
    };
    for (text, expected) in [
        ("100/min", per(100, 60_000_000)),
        ("100 / min", per(100, 60_000_000)),
        ("100/ min", per(100, 60_000_000)),
        ("5/10s", per(5, 10_000_000)),
        ("3/1ms", per(3, 1_000)),
        ("0/s", per(0, 1_000_000)),
        ("1/sec", per(1, 1_000_000)),
        ("1/2secs", per(1, 2_000_000)),
        ("1/m", per(1, 60_000_000)),
        ("1/5mins", per(1, 300_000_000)),
        ("1/h", per(1, 3_600_000_000)),
        ("1/hour", per(1, 3_600_000_000)),
        ("1/2hours", per(1, 7_200_000_000)),
        ("1/d", of(1, CalendarUnit::Day)),
        ("1/day", of(1, CalendarUnit::Day)),
        ("1/1days", of(1, CalendarUnit::Day)),
        ("1/24h", per(1, 86_400_000_000)),
        ("1/30days", per(1, 30 * 86_400_000_000)),
        ("1/w", of(1, CalendarUnit::Week)),
        ("1/week", of(1, CalendarUnit::Week)),
        ("1/7d", per(1, 604_800_000_000)),
        ("1000/month", of(1_000, CalendarUnit::Month)),
        ("1000 / 1month", of(1_000, CalendarUnit::Month)),
        ("1/months", of(1, CalendarUnit::Month)),
        ("1/2weeks", per(1, 2 * 604_800_000_000)),
        ("4294967295/366d", per(4_294_967_295, 366 * 86_400_000_000)),
        ("unlimited", Ok(WrittenRate::Unlimited)),
        ("20", Ok(WrittenRate::Slots(20))),
    ] {
        assert_eq!(rate(text), expected, "{text}");
    }
    for text in [
        "",
        "/",
        "5/",
        "/s",
        "5/us",
        "5/3months",
        "5/0month",
        "5/mo",
        "5/year",
        "5/second",
        "5/minutes",
        "5 /  s",
        "5  /s",
        " 5/s",
        "5/s ",
        "5/S",
        "+5/s",
        "5/-1s",
        "5/1 s",
        "5/1.5s",
        "1_000/s",
        "five/s",
        "Unlimited",
        "5/ms/s",
        "٥/s",
    ] {
        assert!(rate(text).is_err_and(|problem| problem.code.code == "TG010"), "{text:?}");
    }
}

#[test]
fn durations_have_a_unit_and_no_space() {
    assert_eq!(duration_us("0s"), Ok(0));
    assert_eq!(duration_us("25ms"), Ok(25_000));
    assert_eq!(duration_us("90mins"), Ok(5_400_000_000));
    for text in ["5", "s", "5 s", "1.5s", "-1s", "1h30m", ""] {
        assert!(duration_us(text).is_err(), "{text:?}");
    }
    for us in [1_000, 25_000, 1_000_000, 90_000_000, 3_600_000_000, 86_400_000_000] {
        assert_eq!(duration_us(&format_us(us)), Ok(us), "a formatted duration can be parsed");
    }
}

#[test]
fn sizes_know_both_kinds_of_thousand() {
    assert_eq!(size("64MiB"), Ok(64 << 20));
    assert_eq!(size("64MB"), Ok(64_000_000));
    assert_eq!(size("4096"), Ok(4096));
    assert_eq!(size("1TiB"), Ok(1 << 40));
    assert!(size("MiB").is_err() && size("1 MiB").is_err() && size("99999999TiB").is_err());
}

#[test]
fn factors_are_exact_to_three_places() {
    assert_eq!(factor_milli("2"), Ok(2_000));
    assert_eq!(factor_milli("1.5"), Ok(1_500));
    assert_eq!(factor_milli("1.001"), Ok(1_001));
    assert_eq!(factor_milli("1.50000"), Ok(1_500));
    assert_eq!(factor_milli("0.999"), Ok(999));
    for text in ["1.0001", "1.", ".5", "1e3", "-1", "+2", "", "1.5.5", "1,5", "１"] {
        assert!(factor_milli(text).is_err(), "{text:?}");
    }
}

#[test]
fn networks_are_truncated_and_mapped_addresses_are_ipv4() {
    for (text, expected) in [
        ("10.1.2.3", "10.1.2.3/32"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("2001:db8::1/32", "2001:db8::/32"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::/0", "::/0"),
    ] {
        assert_eq!(network(text).unwrap().to_string(), expected);
    }
}

#[test]
fn redis_urls_are_taken_apart_without_showing_the_password() {
    let url = redis_url("rediss://us%40er:p%3Aw@[::1]:7000/3").unwrap();
    let shown = format!("{url:?}");
    assert!(shown.contains("us@er") && shown.contains("***") && !shown.contains("p:w"), "{shown}");
    assert!(shown.contains("7000") && shown.contains("database: 3"), "{shown}");
    assert!(format!("{:?}", redis_url("redis://:secret@h")).contains("username: None"));
    for (text, database) in [("unix:///run/redis.sock", 0), ("unix:///run/redis.sock?db=3", 3)] {
        let path = "/run/redis.sock".into();
        assert_eq!(redis_url(text).unwrap(), RedisUrl::Unix { path, database });
    }
    for text in [
        "unix:///s?db=x",
        "unix:///s?database=1",
        "unix:///s?",
        "unix://relative",
        "redis://",
        "redis://h:99999",
        "redis://h/x",
        "h:6379",
    ] {
        assert!(redis_url(text).is_err(), "{text}");
    }
}

#[test]
fn header_names_are_lower_case_and_other_attributes_keep_theirs() {
    assert_eq!(&*attribute("header.X-Plan").unwrap(), "header.x-plan");
    assert_eq!(&*attribute("query.Page").unwrap(), "query.Page");
    assert_eq!(&*attribute("user name").unwrap(), "user name");
    assert!(is_built_in("ip") && is_built_in("header.x") && !is_built_in("user"));
}

#[test]
fn shares() {
    for (text, ppm) in
        [("100%", 1_000_000), ("1%", 10_000), ("0.05%", 500), ("0.0001%", 1), ("12.5%", 125_000)]
    {
        assert_eq!(share_ppm(text), Ok(ppm), "{text}");
    }
    for wrong in
        ["", "%", "1", "0%", "0.00001%", "100.0001%", "101%", "-1%", "1e2%", ".5%", "1.%", "1 %"]
    {
        assert!(share_ppm(wrong).is_err(), "{wrong}");
    }
}
