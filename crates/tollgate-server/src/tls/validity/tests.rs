use super::{Validity, seconds};

#[test]
fn times_are_those_of_the_calendar() {
    for (tag, text, expected) in [
        (0x17, "700101000000Z", Some(0)),
        (0x17, "000229120000Z", Some(951_825_600)),
        (0x17, "491231235959Z", Some(2_524_607_999)),
        (0x18, "20500101000000Z", Some(2_524_608_000)),
        (0x17, "500101000000Z", Some(-631_152_000)),
        (0x18, "99991231235959Z", Some(253_402_300_799)),
        (0x17, "700101000000", None),
        (0x17, "701301000000Z", None),
        (0x17, "70010100000xZ", None),
        (0x18, "700101000000Z", None),
        (0x04, "700101000000Z", None),
    ] {
        assert_eq!(seconds(tag, text.as_bytes()), expected, "{text}");
    }
}

/// Written by hand: a version, a serial number, an algorithm, an issuer, then the dates.
#[test]
fn the_dates_of_a_certificate_are_found() {
    let dates = b"\x30\x1e\x17\x0d260101000000Z\x17\x0d270101000000Z";
    let head = b"\xa0\x03\x02\x01\x02\x02\x01\x01\x30\x00\x30\x00";
    for head in [&head[..], &head[5..]] {
        let inner = [head, dates].concat();
        let wrap = |inner: &[u8]| [&[0x30, 0x81, inner.len() as u8], inner].concat();
        let found = Validity::of(&wrap(&wrap(&inner))).unwrap();
        assert_eq!(found, Validity { from_s: 1_767_225_600, until_s: 1_798_761_600 });
        let at = |second: i64| found.problem_at(second as u64 * 1_000_000);
        assert_eq!(at(found.from_s - 1), Some("is not valid yet"));
        assert_eq!((at(found.from_s), at(found.until_s)), (None, None));
        assert_eq!(at(found.until_s + 1), Some("has expired"));
    }
    assert_eq!(Validity::of(b"\x30\x03\x30\x01"), None);
}
