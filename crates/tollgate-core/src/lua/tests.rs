use super::*;

#[test]
fn every_part_stands_once_and_before_what_needs_it() {
    let script =
        compose(MIRRORS.iter().flat_map(|mirror| mirror.1.iter().copied()).chain([PENALTY]));
    for part in [MULDIV, WINDOW, BUCKET, EXPIRY_LOG, PENALTY] {
        assert_eq!(script.matches(part).count(), 1);
    }
    assert!(script.starts_with(MULDIV));
    for (name, parts) in MIRRORS {
        let table = std::format!("local {} = ", name.replace('-', "_"));
        assert!(parts.last().unwrap().contains(&table), "{name} has a local of its own name");
        let at = |part: &str| script.find(part).unwrap();
        assert!(parts.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{name} follows its parts");
    }
}

#[test]
fn an_unknown_algorithm_has_no_mirror() {
    assert_eq!(parts("gcra").map(<[_]>::len), Some(3));
    assert_eq!(parts("no-such"), None);
}

#[test]
fn the_expiry_log_s_epoch_is_the_one_its_mirror_uses() {
    assert!(EXPIRY_LOG.contains(&std::format!("EXPIRY_LOG_EPOCH_US = {EXPIRY_LOG_EPOCH_US}\n")));
}

#[test]
fn numbers_are_read_as_they_were_written() {
    use crate::algorithm::*;
    use crate::{LimitParams, Rate};
    let day = 86_400_000_000;
    for (count, period_us) in
        [(7, 60_000_000), (1_000_000, day), (3, 1_000), (u32::MAX.into(), 366 * day), (0, 1_000)]
    {
        let rate = Rate::try_new(count, period_us).unwrap();
        let burst = Some(count.clamp(1, 9));
        let buckets = [
            TokenBucket::try_new(rate, burst).map(LimitParams::TokenBucket),
            Gcra::try_new(rate, None).map(LimitParams::Gcra),
            LeakyBucket::try_new(rate, burst, Some(4)).map(LimitParams::LeakyBucket),
        ];
        let others = [
            LimitParams::FixedWindow(FixedWindow::new(rate)),
            LimitParams::SlidingWindow(SlidingWindow::new(rate)),
            LimitParams::SlidingLog(SlidingLog::new(rate)),
            LimitParams::Concurrency(Concurrency::try_new(count, 30_000_000).unwrap()),
            LimitParams::CalendarWindow(CalendarWindow::new(
                u32::try_from(count).unwrap(),
                crate::CalendarUnit::Month,
                crate::Zone::UTC,
            ))
            .resolve_calendar(period_us),
        ];
        for params in others.into_iter().chain(buckets.into_iter().flatten()) {
            assert_eq!(decode_params(encode_params(&params)), Some(params));
        }
    }
    assert_eq!(decode_params([0; 7]), None);
    assert_eq!(decode_params([9, 1, 1, 1, 1, 1, 1_000]), None);
    assert_eq!(
        decode_params([8, 1, 1, 1, 1, 1, 1_000]),
        None,
        "no unit of the calendar is a millisecond"
    );
    assert_eq!(decode_params([5, 1, 1, 1, 1, 2, 1_000]), None, "more burst than capacity");
}

#[test]
fn spans_are_those_of_the_numbers() {
    use crate::algorithm::*;
    use crate::{LimitParams, Rate};
    let gcra = |count, period_us, burst| {
        let rate = Rate::try_new(count, period_us).unwrap();
        LimitParams::Gcra(Gcra::try_new(rate, Some(burst)).unwrap())
    };
    // The interval is 60/7 s: beside a cost of two, three more units fit.
    let sevenths = |units: u64| [units * 60_000_000 / 7, units * 60_000_000 % 7];
    let ([room, part], [span, span_part]) = (sevenths(3), sevenths(2));
    let spans_of_two = Some([room + 1, part, span, span_part, 7, 7, 42_857_143, 60_000_000]);
    assert_eq!(charge_kind(&gcra(7, 60_000_000, 5), 2), spans_of_two);
    assert_eq!(charge_kind(&gcra(7, 60_000_000, 5), 5).unwrap()[0], 1, "beside nothing it fits");
    assert_eq!(charge_kind(&gcra(7, 60_000_000, 5), 6).unwrap()[0], 0, "it never fits");
    assert_eq!(charge_kind(&gcra(0, 60_000_000, 1), 1).unwrap()[0], 0, "nothing ever fits");
    let rate = Rate::try_new(7, 1_000_000).unwrap();
    let fixed = LimitParams::FixedWindow(FixedWindow::new(rate));
    assert_eq!(charge_kind(&fixed, 2), Some([6, 1_000_000, 2, 0, 0, 0, 0, 0]));
    assert_eq!(charge_kind(&fixed, 8).unwrap()[0], 0, "it never fits");
    let slides = LimitParams::SlidingWindow(SlidingWindow::new(rate));
    assert_eq!(charge_kind(&slides, 7), Some([1, 1_000_000, 7, 1, 0, 0, 0, 0]));
    assert_eq!(charge_kind(&LimitParams::SlidingLog(SlidingLog::new(rate)), 1), None);
}
