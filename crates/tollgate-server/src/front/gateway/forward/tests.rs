//! Tests of forwarded headers.

use super::{
    allowed_protocols, any_carries_http, has_token, hide_connection_listed, write_interim,
    write_response,
};
use hyper::{
    HeaderMap, StatusCode,
    header::{CONNECTION, HeaderName, HeaderValue},
};
use std::{cell::Cell, fmt::Write as _};
use tollgate_net::{HeaderSpan, Headers, HttpResponse, headers_to_lines, parse_response};
use tollgate_tower::RateLimitHeaders;

/// A long `Connection` header costs one lookup per name, not one comparison with every other name.
#[test]
fn a_long_connection_header_costs_one_lookup_for_each_name() {
    let mut list = String::from("x-own, x-read");
    (0..3_000).for_each(|n| write!(list, ", n{n}").unwrap());
    (0..3_000).for_each(|_| list.push_str(", x-own"));
    let mut map = HeaderMap::new();
    map.insert(CONNECTION, HeaderValue::try_from(list).unwrap());
    for name in ["x-own", "x-read", "x-other"] {
        map.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
    }
    let (mut bytes, mut lines): (Vec<u8>, Vec<HeaderSpan>) = Default::default();
    headers_to_lines(&map, &mut bytes, &mut lines);
    let asked = Cell::new(0);
    let mut headers = Headers::new(&bytes, &lines);
    hide_connection_listed(&mut headers, |name| {
        asked.set(asked.get() + 1);
        name == "x-read"
    });
    assert_eq!(asked.get(), 2, "only names that the request has are compared");
    let mut left: Vec<_> = headers.iter().map(|(name, _)| name).collect();
    left.sort_unstable();
    assert_eq!(left, [&b"connection"[..], b"x-other", b"x-read"]);
    assert!(has_token(headers.all("connection"), b"x-own"));
}

/// Calls `write` with the headers of a response.
fn with_headers<T>(lines: &str, write: impl FnOnce(StatusCode, Headers<'_>) -> T) -> T {
    let text = format!("HTTP/1.1 {lines}\r\n\r\n");
    let mut lines = Vec::new();
    let parsed = parse_response(text.as_bytes(), false, &mut lines).unwrap().unwrap();
    write(parsed.status, Headers::new(text.as_bytes(), &lines))
}

/// The lines for the client, and whether they have a date; `None`: the response is refused.
fn written(lines: &str) -> Option<(String, bool)> {
    let mut answer = HttpResponse::default();
    let is_written = with_headers(lines, |status, mut headers| {
        hide_connection_listed(&mut headers, |_| false);
        write_response(status, headers, &RateLimitHeaders::default(), &mut answer)
    });
    is_written.then(|| (String::from_utf8(answer.lines).unwrap(), answer.is_dated))
}

#[test]
fn a_client_gets_no_header_that_was_for_the_gateway_alone() {
    for (lines, expected, is_dated) in [
        ("200 OK\r\nServer: X\r\nA: b\r\na: c", "server: X\r\na: b\r\na: c\r\n", false),
        ("200 OK\r\nDate: then\r\nA: b", "date: then\r\na: b\r\n", true),
        // The gateway writes the framing of the body itself.
        ("200 OK\r\nContent-Length: 2\r\nA: b", "a: b\r\n", false),
        ("200 OK\r\nTransfer-Encoding: chunked\r\nA: b", "a: b\r\n", false),
        ("200 OK\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nA: b", "a: b\r\n", false),
        ("200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nA: b", "a: b\r\n", false),
        ("200 OK\r\nUpgrade: h2c\r\nProxy-Connection: x\r\nA: b", "a: b\r\n", false),
        (
            "101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket",
            "connection: upgrade\r\nupgrade: WebSocket\r\n",
            false,
        ),
    ] {
        assert_eq!(written(lines), Some((expected.into(), is_dated)), "{lines}");
    }
    assert_eq!(written("101 Switching Protocols\r\nUpgrade: h2c"), None);
}

#[test]
fn interim_answers_are_whole_heads() {
    let lines = "103 Hints\r\nLink: x\r\nConnection: close\r\nRateLimit-Limit: 5";
    let mut out = Vec::new();
    with_headers(lines, |status, headers| write_interim(status, headers, &mut out));
    assert_eq!(String::from_utf8(out).unwrap(), "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
}

#[test]
fn requests_come_by_no_other_protocol() {
    let cases: [(&[&str], Option<&str>); 12] = [
        (&["websocket"], Some("websocket")),
        (&["WebSocket/13"], Some("WebSocket/13")),
        (&["h2c"], None),
        (&["H2C"], None),
        (&["HTTP/2.0"], None),
        (&["TLS/1.0, HTTP/1.1"], None),
        (&["websocket, h2c"], Some("websocket")),
        (&["h2c", "websocket"], Some("websocket")),
        (&[",, irc/6.9 ,rta/x11"], Some("irc/6.9, rta/x11")),
        (&["h2c /1"], None),
        (&[""], None),
        (&[], None),
    ];
    for (given, expected) in cases {
        let lines = || given.iter().map(|line| line.as_bytes());
        assert_eq!(allowed_protocols(lines()).as_deref(), expected.map(str::as_bytes), "{given:?}");
        assert_eq!(
            any_carries_http(lines()),
            given.concat().to_lowercase().contains("h2c") || given.concat().contains("HTTP")
        );
    }
}
