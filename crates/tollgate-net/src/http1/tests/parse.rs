//! Accepted and refused heads, and their contents.

use super::super::{Framing, ParseError, parse::ParsedRequest, parse_response};
use crate::head::{HeaderSpan, Headers};
use hyper::Version;
use proptest::prelude::*;
use tollgate_tower::Head;

/// The facts of a request's head, for comparison.
type RequestSummary = (usize, Framing, bool, bool);

fn parse(text: &[u8]) -> Result<Option<ParsedRequest>, ParseError> {
    super::super::parse::parse_request(text, &mut Vec::new(), 100)
}

/// Parses `text`, and checks that every prefix is incomplete or refused in the same way.
fn parsed(text: &str) -> Result<Option<RequestSummary>, ParseError> {
    let whole = parse(text.as_bytes());
    let end = whole.ok().flatten().map_or(text.len(), |parsed| parsed.len);
    for cut in 0..end {
        match (parse(&text.as_bytes()[..cut]), &whole) {
            (Ok(None), _) => {}
            // A prefix may be refused for a different fault.
            (Err(_), Err(_)) => {}
            (cut_short, _) => panic!("{text:?} at {cut}: {cut_short:?}"),
        }
    }
    let said = |parsed: ParsedRequest| {
        let ParsedRequest { len, framing, persists, known, .. } = parsed;
        (len, framing, persists, known.expects_continue)
    };
    whole.map(|parsed| parsed.map(said))
}

fn head(more: &str) -> String {
    format!("POST / HTTP/1.1\r\nhost: x\r\n{more}\r\n")
}

#[test]
fn a_request_is_found_with_all_it_has() {
    let text =
        "\r\n\r\nDELETE /a?b=c HTTP/1.1\r\nHost: X:80\r\nempty:\r\nSpaced:  a b \t\r\n\r\nGET /";
    let mut lines: Vec<HeaderSpan> = Vec::new();
    let parsed = super::super::parse::parse_request(text.as_bytes(), &mut lines, 100);
    let parsed = parsed.unwrap().unwrap();
    assert_eq!(&text[parsed.len..], "GET /");
    let head = parsed.head(text.as_bytes(), &lines);
    assert_eq!((head.method, head.target), ("DELETE", "/a?b=c"));
    assert_eq!((head.path(), head.query(), head.version), ("/a", Some("b=c"), Version::HTTP_11));
    let headers: Vec<_> = head.headers.iter().collect();
    let expected: [(&[u8], &[u8]); 3] = [(b"Host", b"X:80"), (b"empty", b""), (b"Spaced", b"a b")];
    assert_eq!(headers, expected);
}

#[test]
fn a_target_is_split_into_host_path_and_query() {
    for (target, authority, host, path, query) in [
        ("/", None, None, "/", None),
        ("/a/b?c=d?e", None, None, "/a/b", Some("c=d?e")),
        ("/a?b=http://c/d", None, None, "/a", Some("b=http://c/d")),
        ("http://a:1/b?c", Some("a:1"), Some("a"), "/b", Some("c")),
        ("http://a", Some("a"), Some("a"), "/", None),
        ("http://a?b", Some("a"), Some("a"), "/", Some("b")),
        ("https://u@[::1]:80/", Some("u@[::1]:80"), Some("[::1]"), "/", None),
        ("*", None, None, "*", None),
    ] {
        let text = format!("GET {target} HTTP/1.1\r\n\r\n");
        let parsed = parse(text.as_bytes()).unwrap().unwrap();
        let head = parsed.head(text.as_bytes(), &[]);
        assert_eq!((head.target_authority(), Head::host(&head)), (authority, host), "{target}");
        assert_eq!((head.path(), head.query()), (path, query), "{target}");
    }
}

#[test]
fn requests_with_one_meaning_are_taken() {
    for text in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "G#T / HTTP/1.1\r\nhost: a\r\nx: #\r\n\r\n",
        "PROPFIND * HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET http://a/b HTTP/1.1\r\nhost: a\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost:\r\n\r\n",
        "GET / HTTP/1.1\r\nx_y.z: \u{e9}\r\n\r\n",
    ] {
        let (len, framing, ..) = parsed(text).unwrap().unwrap();
        assert_eq!((len, framing), (text.len(), Framing::Empty), "{text:?}");
    }
}

#[test]
fn requests_with_two_meanings_or_none_are_refused() {
    use ParseError::{Fragment, Host, Syntax};
    for (text, why) in [
        ("GET /a#b HTTP/1.1\r\nhost: a\r\n\r\n", Fragment),
        ("GET # HTTP/1.1\r\nhost: a\r\n\r\n", Fragment),
        ("GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n", Host),
        ("GET / HTTP/1.1\r\nhost: a\r\nx: y\r\nHOST: b\r\n\r\n", Host),
        ("GET  / HTTP/1.1\r\nhost: a\r\n\r\n", Syntax),
        ("GET / HTTP/1.1 \r\nhost: a\r\n\r\n", Syntax),
        ("GET / HTTP/2.0\r\nhost: a\r\n\r\n", Syntax),
        ("GET / HTTP/1.2\r\nhost: a\r\n\r\n", Syntax),
        ("GET / http/1.1\r\nhost: a\r\n\r\n", Syntax),
        ("GET /\r\n\r\n", Syntax),
        ("GET / HTTP/1.1\r\nhost: a\r\na: b\r\n c\r\n\r\n", Syntax),
        ("GET / HTTP/1.1\r\n host: a\r\n\r\n", Syntax),
        ("GET / HTTP/1.1\r\nhost : a\r\n\r\n", Syntax),
        ("GET / HTTP/1.1\r\nhost\r\n\r\n", Syntax),
        ("GET / HTTP/1.1\r\n: a\r\n\r\n", Syntax),
        ("GET / HTTP/1.1\r\na: \0\r\n\r\n", Syntax),
        ("GET / HTTP/1.1\r\na: b\rc\r\n\r\n", Syntax),
        ("GET /\0 HTTP/1.1\r\nhost: a\r\n\r\n", Syntax),
        ("SSH-2.0\r\n\r\n", Syntax),
        (" GET / HTTP/1.1\r\nhost: a\r\n\r\n", Syntax),
    ] {
        assert_eq!(parsed(text), Err(why), "{text:?}");
    }
}

#[test]
fn a_line_ends_with_cr_and_lf() {
    let text = "\r\n\r\nPOST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n";
    assert!(parsed(text).unwrap().is_some());
    for (at, _) in text.match_indices("\r\n") {
        for end in ["\n", "\r", "\n\r", "\r\r\n"] {
            let changed = [&text[..at], end, &text[at + 2..]].concat();
            let found = parsed(&changed);
            assert!(matches!(found, Ok(None) | Err(ParseError::Syntax)), "{changed:?}: {found:?}");
            // A bare LF is refused immediately, without waiting for more.
            let is_refused = parse(&changed.as_bytes()[..at + end.len()]).is_err();
            assert!(is_refused || end != "\n", "{changed:?}");
        }
    }
}

#[test]
fn a_length_is_said_once_and_in_digits() {
    for (said, expected) in
        [("0", 0), ("1", 1), ("01", 1), ("999999999999999999", 999_999_999_999_999_999)]
    {
        let expected = if expected == 0 { Framing::Empty } else { Framing::Length(expected) };
        for name in ["content-length", "Content-Length"] {
            let found = parsed(&head(&format!("{name}: {said}\r\n"))).unwrap().unwrap();
            assert_eq!(found.1, expected, "{said}");
        }
    }
    for said in [
        "",
        "+1",
        "-1",
        "1 1",
        "1,1",
        "1, 1",
        "0x1",
        "1a",
        "1.0",
        "\u{661}",
        "9999999999999999999",
        "1\r\ncontent-length: 1",
        "0\r\ncontent-length: 0",
        "1\r\nContent-Length: 2",
    ] {
        let text = head(&format!("content-length: {said}\r\n"));
        assert_eq!(parsed(&text), Err(ParseError::Framing), "{said:?}");
    }
}

#[test]
fn the_only_coding_is_chunked() {
    for said in ["chunked", "Chunked", " chunked "] {
        let found = parsed(&head(&format!("Transfer-Encoding:{said}\r\n"))).unwrap().unwrap();
        assert_eq!(found.1, Framing::Chunked, "{said}");
    }
    for said in [
        "",
        "identity",
        "gzip",
        "gzip, chunked",
        "chunked, chunked",
        "chunked, identity",
        "chunked,",
        "xchunked",
        "chunked;a",
        "\"chunked\"",
        "chunked\r\ntransfer-encoding: chunked",
        "chunked\r\ncontent-length: 0",
        "chunked\r\ncontent-length: 5",
        "chunked\r\ntransfer-encoding: gzip",
    ] {
        let text = head(&format!("transfer-encoding: {said}\r\n"));
        assert_eq!(parsed(&text), Err(ParseError::Framing), "{said:?}");
        let text = head(&format!("content-length: 1\r\ntransfer-encoding: {said}\r\n"));
        assert_eq!(parsed(&text), Err(ParseError::Framing), "{said:?}");
    }
    let old = head("transfer-encoding: chunked\r\n").replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(parsed(&old), Err(ParseError::Framing));
}

#[test]
fn headers_have_a_largest_number() {
    for (count, is_taken) in [(0, true), (99, true), (100, false), (127, false), (1000, false)] {
        let more: String = (0..count).map(|n| format!("x-{n}: y\r\n")).collect();
        let found = parse(head(&more).as_bytes());
        assert_eq!(found.map(|found| found.is_some()).ok(), is_taken.then_some(true), "{count}");
        assert_eq!(found.err(), (!is_taken).then_some(ParseError::TooLarge), "{count}");
    }
}

#[test]
fn a_request_says_whether_another_follows() {
    for (more, persists, persists_in_1_0) in [
        ("", true, false),
        ("connection: keep-alive\r\n", true, true),
        ("Connection: Keep-Alive\r\n", true, true),
        ("connection: x, keep-alive\r\n", true, true),
        ("connection: close\r\n", false, false),
        ("Connection: Close\r\n", false, false),
        ("connection: x ,close\r\n", false, false),
        ("connection: x\r\nconnection: close\r\n", false, false),
        ("connection: keep-alive, close\r\n", false, false),
        ("connection: closed\r\n", true, false),
    ] {
        let text = head(more);
        assert_eq!(parsed(&text).unwrap().unwrap().2, persists, "{more}");
        let old = text.replace("HTTP/1.1", "HTTP/1.0");
        assert_eq!(parsed(&old).unwrap().unwrap().2, persists_in_1_0, "{more}");
    }
}

#[test]
fn an_expectation_counts_where_it_can_be_met() {
    for (more, expects) in [
        ("expect: 100-continue\r\n", false),
        ("expect: 100-continue\r\ncontent-length: 0\r\n", false),
        ("Expect: 100-Continue\r\ncontent-length: 1\r\n", true),
        ("expect: 100-continue\r\ntransfer-encoding: chunked\r\n", true),
        ("expect: 200-ok\r\ncontent-length: 1\r\n", false),
    ] {
        assert_eq!(parsed(&head(more)).unwrap().unwrap().3, expects, "{more}");
    }
    let old = head("expect: 100-continue\r\ncontent-length: 1\r\n").replace("1.1", "1.0");
    assert!(!parsed(&old).unwrap().unwrap().3);
}

/// A response head: status, reason, framing, length, and whether the connection persists.
type ResponseSummary = (u16, String, Framing, Option<u64>, bool);

fn response(text: &str, is_head: bool) -> Result<Option<ResponseSummary>, ParseError> {
    let mut lines = Vec::new();
    let whole = parse_response(text.as_bytes(), is_head, &mut lines);
    if let Ok(Some(parsed)) = whole {
        assert!(Headers::new(text.as_bytes(), &lines).iter().count() <= text.matches(':').count());
        for cut in 0..parsed.len {
            let found = parse_response(&text.as_bytes()[..cut], is_head, &mut lines);
            assert!(matches!(found, Ok(None)), "{text:?} at {cut}: {found:?}");
        }
    }
    whole.map(|parsed| {
        parsed.map(|parsed| {
            let reason = String::from_utf8_lossy(parsed.reason(text.as_bytes())).into_owned();
            (parsed.status.as_u16(), reason, parsed.framing, parsed.length, parsed.persists)
        })
    })
}

#[test]
fn the_framing_of_an_answer_depends_on_its_status_and_request() {
    use Framing::{Chunked, Empty, Length, UntilClose};
    for (status, headers, of_get, of_head, length, persists) in [
        ("200 OK", "content-length: 5\r\n", Length(5), Empty, Some(5), true),
        ("200 OK", "content-length: 0\r\n", Empty, Empty, Some(0), true),
        ("200 OK", "content-length: 5\r\ncontent-length: 5\r\n", Length(5), Empty, Some(5), true),
        ("200 OK", "content-length: 5, 5\r\n", Length(5), Empty, Some(5), true),
        (
            "200 OK",
            "content-length: 5,05\r\ncontent-length: 5\r\n",
            Length(5),
            Empty,
            Some(5),
            true,
        ),
        ("200 OK", "Transfer-Encoding: Chunked\r\n", Chunked, Empty, None, true),
        // A length beside `chunked` is dropped, and the connection does not persist.
        (
            "200 OK",
            "content-length: 5\r\ntransfer-encoding: chunked\r\n",
            Chunked,
            Empty,
            None,
            false,
        ),
        ("200 OK", "content-length: 5\r\nconnection: close\r\n", Length(5), Empty, Some(5), false),
        ("204 No Content", "", Empty, Empty, None, true),
        ("204 No Content", "content-length: 0\r\n", Empty, Empty, Some(0), true),
        ("304 Not Modified", "content-length: 7\r\n", Empty, Empty, Some(7), true),
        ("304 Not Modified", "", Empty, Empty, None, true),
        ("100 Continue", "", Empty, Empty, None, true),
        ("103 Early Hints", "link: x\r\n", Empty, Empty, None, true),
        ("101 Switching Protocols", "", Empty, Empty, None, true),
        ("404 Not Found", "content-length: 1\r\n", Length(1), Empty, Some(1), true),
    ] {
        let text = format!("HTTP/1.1 {status}\r\n{headers}\r\n");
        for (is_head, framing) in [(false, of_get), (true, of_head)] {
            let found = response(&text, is_head).unwrap().unwrap();
            let (code, reason) = status.split_once(' ').unwrap();
            let expected = (code.parse().unwrap(), reason.into(), framing, length, persists);
            assert_eq!(found, expected, "{text:?}");
        }
    }
    // A response to `HEAD` has no body, even without a length.
    let text = "HTTP/1.1 200 OK\r\na: b\r\n\r\n";
    let expected = |framing, persists| (200, "OK".into(), framing, None, persists);
    assert_eq!(response(text, false), Ok(Some(expected(UntilClose, false))));
    assert_eq!(response(text, true), Ok(Some(expected(Empty, true))));
}

#[test]
fn answers_are_taken_as_upstreams_write_them() {
    for (text, reason) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "OK"),
        ("HTTP/1.1 200 Fine by me\r\ncontent-length: 0\r\n\r\n", "Fine by me"),
        ("HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", ""),
        ("HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n", ""),
        ("HTTP/1.1 200 OK\ncontent-length: 0\n\n", "OK"),
    ] {
        let expected = (200, reason.into(), Framing::Empty, Some(0), true);
        assert_eq!(response(text, false), Ok(Some(expected)), "{text:?}");
    }
    let old = "HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\n";
    for (text, persists) in
        [(old.into(), false), (old.replace("\r\n\r\n", "\r\nconnection: keep-alive\r\n\r\n"), true)]
    {
        let expected = (200, "OK".into(), Framing::Length(5), Some(5), persists);
        assert_eq!(response(&text, false), Ok(Some(expected)), "{text:?}");
    }
}

#[test]
fn answers_with_two_ends_or_none_are_refused() {
    use ParseError::{Framing, Syntax, TooLarge};
    for (headers, why) in [
        ("content-length: 5\r\ncontent-length: 6\r\n", Framing),
        ("content-length: 5, 6\r\n", Framing),
        ("content-length: 5,\r\n", Framing),
        ("content-length:\r\n", Framing),
        ("content-length: +5\r\n", Framing),
        ("content-length: -5\r\n", Framing),
        ("content-length: 0x5\r\n", Framing),
        ("content-length: 5 5\r\n", Framing),
        ("content-length: 9999999999999999999\r\n", Framing),
        ("transfer-encoding: gzip, chunked\r\n", Framing),
        ("transfer-encoding: gzip\r\n", Framing),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", Framing),
        ("a: b\r\n c\r\n", Syntax),
        ("a : b\r\n", Syntax),
        ("a: \0\r\n", Syntax),
    ] {
        assert_eq!(response(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n"), false), Err(why));
    }
    let old = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(response(old, false), Err(Framing));
    for text in
        ["SSH-2.0\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/2 200\r\n"]
    {
        assert_eq!(response(text, false), Err(Syntax), "{text:?}");
    }
    let many = "a: b\r\n".repeat(129);
    assert_eq!(response(&format!("HTTP/1.1 200 OK\r\n{many}\r\n"), false), Err(TooLarge));
}

proptest! {
    /// For any bytes: no panic, and more bytes do not move the end of a head.
    #[test]
    fn more_bytes_do_not_change_a_head(text in "[GET/ HTP1.\r\n:ac-]{0,60}", more: Vec<u8>) {
        let longer = [text.as_bytes(), &more].concat();
        let (short, long) = (parse(text.as_bytes()), parse(&longer));
        if let Ok(Some(short)) = short {
            prop_assert_eq!(long.unwrap().unwrap().len, short.len);
        } else if short.is_err() {
            prop_assert!(long.is_err());
        }
        let _ = parse_response(&longer, false, &mut Vec::new());
    }
}

/// The quick comparison of names agrees with the plain one for every byte at every place.
#[test]
fn names_are_found_in_any_case_and_in_no_other_spelling() {
    for len in 1..20 {
        for at in 0..len {
            for byte in 0..=u8::MAX {
                let mut name = *b"X-Long^Name~of_Parts";
                name[at] = byte;
                let lines = [HeaderSpan::new(&name[..len], b"", &name)];
                let known = &"x-long^name~of_parts"[..len];
                let is_found = Headers::new(&name, &lines).get(known).is_some();
                let is_same = name[..len].eq_ignore_ascii_case(known.as_bytes());
                assert_eq!(is_found, is_same, "{:?} {known}", name[..len].escape_ascii());
            }
        }
    }
}
