use super::*;

#[test]
fn the_line_is_written_anew_when_its_second_is_over() {
    let at = |now_us| with_line(now_us, |line| String::from_utf8(line.to_vec()).unwrap());
    assert_eq!(at(0), "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
    assert_eq!(at(784_111_777_000_000), "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    assert_eq!(at(784_111_777_999_999), "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    assert_eq!(at(784_111_778_000_000), "date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    assert_eq!(value(784_111_778_000_000), "Sun, 06 Nov 1994 08:49:38 GMT");
}

#[test]
fn after_the_year_9999_the_line_stays_at_its_end() {
    for now_us in [253_402_300_799_000_000, 253_402_300_800_000_000, u64::MAX] {
        assert_eq!(value(now_us), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
