use super::*;

#[test]
fn the_line_is_written_anew_when_its_second_is_over() {
    let at = |now_us| with_line(now_us, |line| String::from_utf8(line.to_vec()).unwrap());
    assert_eq!(at(0), "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
    assert_eq!(at(784_111_777_000_000), "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    assert_eq!(at(784_111_777_999_999), "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    assert_eq!(at(784_111_778_000_000), "date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
}
