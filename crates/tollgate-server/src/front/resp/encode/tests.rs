use super::*;

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn every_kind_has_its_bytes() {
    assert_eq!(text(|out| simple(out, "OK")), "+OK\r\n");
    assert_eq!(text(|out| bulk(out, b"a\r\nb")), "$4\r\na\r\nb\r\n");
    assert_eq!(text(|out| null(out, RespVersion::Resp2)), "$-1\r\n");
    assert_eq!(text(|out| null(out, RespVersion::Resp3)), "_\r\n");
    assert_eq!(text(|out| map(out, RespVersion::Resp2, 3)), "*6\r\n");
    assert_eq!(text(|out| map(out, RespVersion::Resp3, 3)), "%3\r\n");
    assert_eq!(text(|out| set(out, RespVersion::Resp3, 3)), "~3\r\n");
    let five = text(|out| decision(out, [0, 16, 15, -1, 2]));
    assert_eq!(five, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
}

#[test]
fn integers_have_all_their_digits() {
    for value in [0, 9, 10, -1, -10, 4_294_967_295, i64::MAX, i64::MIN] {
        assert_eq!(text(|out| integer(out, value)), format!(":{value}\r\n"));
    }
}

/// A client reads one reply per line, so quoted input must not split a reply.
#[test]
fn an_error_is_one_line_whatever_it_quotes() {
    assert_eq!(text(|out| error(out, "ERR a\r\n+OK\r\nb\0c")), "-ERR a  +OK  b c\r\n");
}
