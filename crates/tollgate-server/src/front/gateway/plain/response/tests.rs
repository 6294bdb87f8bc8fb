//! Which answers are plain.

use super::{Came, Manner, write};
use tollgate_tower::Shown;

const ROOM: usize = 1024;

fn came(text: &str) -> (Came, String) {
    came_to(text, false)
}

fn came_to(text: &str, is_head: bool) -> (Came, String) {
    let (shown, date) = (&Shown::default(), b"date: now\r\n");
    let manner = Manner { shown, date, is_head, is_last: false };
    let mut out = b"what was there before".to_vec();
    let came = write(text.as_bytes(), ROOM, &manner, &mut out);
    (came, String::from_utf8_lossy(&out).into_owned())
}

#[test]
fn a_plain_answer_is_written_without_what_was_for_us_alone() {
    let (came, out) = came(
        "HTTP/1.1 404 Not Found\r\nServer: X\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nContent-Length: 2\r\n\r\nok",
    );
    assert_eq!(came, Came::Whole);
    let expected =
        "HTTP/1.1 404 Not Found\r\nserver: X\r\ncontent-length: 2\r\ndate: now\r\n\r\nok";
    assert_eq!(out, expected);
}

#[test]
fn the_last_answer_says_so_and_a_date_is_not_doubled() {
    let (shown, date) = (&Shown::default(), b"date: now\r\n");
    let manner = Manner { shown, date, is_head: false, is_last: true };
    let mut out = Vec::new();
    let text = b"HTTP/1.1 200 OK\r\nDate: then\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(write(text, ROOM, &manner, &mut out), Came::Whole);
    let expected =
        "HTTP/1.1 200 OK\r\ndate: then\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&out), expected);
}

#[test]
fn parts_are_told_from_what_is_something_else() {
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    for len in 1..whole.len() {
        assert_eq!(came(&whole[..len]).0, Came::Part, "{len}");
    }
    assert_eq!(came(&format!("{whole}x")).0, Came::Unusual);
    let unusual = [
        "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 Fine\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 299 \r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: +0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 00\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0, 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\nx",
        "HTTP/1.1 304 Not Modified\r\ncontent-length: 1\r\n\r\nx",
        "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive, x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nupgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntrailer: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nRateLimit: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nX-RateLimit-Limit: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nX-Tollgate-Source: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nproxy-connection: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\na: b\r\n c\r\n\r\n",
        "SSH-2.0\r\n",
    ];
    for text in unusual {
        assert_eq!(came(text).0, Came::Unusual, "{text}");
    }
}

#[test]
fn what_has_no_body_is_whole_with_its_head() {
    let date = "date: now\r\n\r\n";
    for (text, is_head, expected) in [
        ("204 No Content\r\na: b\r\n", false, "204 No Content\r\na: b\r\n"),
        ("204 No Content\r\ncontent-length: 0\r\n", false, "204 No Content\r\n"),
        (
            "304 Not Modified\r\ncontent-length: 7\r\netag: x\r\n",
            false,
            "304 Not Modified\r\netag: x\r\n",
        ),
        (
            "304 Not Modified\r\ncontent-length: 7\r\n",
            true,
            "304 Not Modified\r\ncontent-length: 7\r\n",
        ),
        (
            "200 OK\r\ncontent-length: 123456789012\r\n",
            true,
            "200 OK\r\ncontent-length: 123456789012\r\n",
        ),
        ("200 OK\r\ntransfer-encoding: chunked\r\n", true, "200 OK\r\n"),
        ("200 OK\r\na: b\r\n", true, "200 OK\r\na: b\r\n"),
    ] {
        let text = format!("HTTP/1.1 {text}\r\n");
        let (came, out) = came_to(&text, is_head);
        assert_eq!((came, out), (Came::Whole, format!("HTTP/1.1 {expected}{date}")));
        assert_eq!(came_to(&format!("{text}x"), is_head).0, Came::Unusual, "{text}");
    }
}

#[test]
fn chunks_are_passed_on_as_they_are() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
    let body = "5\r\nhello\r\n0A\r\n0123456789\r\n00\r\n\r\n";
    let (whole, out) = came(&format!("{head}{body}"));
    assert_eq!(whole, Came::Whole);
    let expected =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ndate: now\r\n\r\n{body}");
    assert_eq!(out, expected);
    for len in 0..body.len() {
        assert_eq!(came(&format!("{head}{}", &body[..len])).0, Came::Part, "{len}");
    }
    for unusual in [
        "\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0\r\n\r\n",
        "5;\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "4\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\na: b\r\n\r\n",
        "5\r\nhello\r\n0\r\n\n",
        "5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
        "00000005\r\nhello\r\n0\r\n\r\n",
        "ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    ] {
        assert_eq!(came(&format!("{head}{unusual}")).0, Came::Unusual, "{unusual}");
    }
    // The rest of it would find no room.
    assert_eq!(
        came(&format!("{head}3e0\r\n{}", "x".repeat(ROOM - head.len() - 5))).0,
        Came::Unusual
    );
}
