//! Responses of upstreams: an additional hop-by-hop header in the request changes none of them.

use super::{Backend, Gateway, LONG, read_chunked, read_head, sorted};
use crate::http::Client;
use std::io::{Read, Write};

/// An upstream's response, and whether its connection stays open.
pub(super) const ANSWERS: [(&str, bool); 27] = [
    ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", true),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: X\r\nset-cookie: a=b\r\nSet-Cookie: c\r\n\r\nhello",
        true,
    ),
    ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nempty:\r\n\r\n", true),
    ("HTTP/1.1 200 Fine\r\ncontent-length: 2\r\n\r\nok", true),
    ("HTTP/1.1 299 \r\ncontent-length: 2\r\n\r\nok", true),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\nkeep-alive: timeout=5\r\n\r\nok",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: x-own\r\nx-own: 1\r\nx-other: 2\r\n\r\nok",
        true,
    ),
    ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", false),
    ("HTTP/1.1 200 OK\r\n\r\nuntil the end", false),
    ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", false),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nx: y\r\n\r\n2\r\nok\r\nA\r\n0123456789\r\n0\r\n\r\n",
        true,
    ),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\n\r\n", true),
    ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n", true),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        true,
    ),
    ("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", true),
    ("HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n", true),
    ("HTTP/1.1 204 No Content\r\nx: y\r\n\r\n", true),
    ("HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\netag: x\r\n\r\n", true),
    (
        "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        true,
    ),
    ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok", true),
    ("HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nok", true),
    ("HTTP/1.1 200 OK\r\ncontent-length: 002\r\n\r\nok", true),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nratelimit: \"b\";r=1\r\nRateLimit-Policy: \"b\";q=1\r\n\r\nok",
        true,
    ),
    (
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-ratelimit-remaining: 1\r\nx-tollgate-source: theirs\r\n\r\nok",
        true,
    ),
    ("HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-length: 2\r\n\r\nok", true),
    ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nproxy-authenticate: x\r\ntrailer: y\r\n\r\nok", true),
];

/// A response in a form that can be compared: a current date is replaced, an old one is kept.
pub(super) fn whole(client: &mut Client, method: &str) -> (Vec<String>, String) {
    let mut head = read_head(&mut client.0).unwrap();
    while head.starts_with("HTTP/1.1 103 ") {
        head = read_head(&mut client.0).unwrap();
    }
    let mut lines = sorted(&head);
    let field = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
    let body = match (field("content-length: "), field("transfer-encoding: ")) {
        _ if method == "HEAD" || lines[0].contains(" 304 ") => Vec::new(),
        (Some(length), _) => {
            let mut body = vec![0; length.parse().unwrap()];
            client.0.read_exact(&mut body).unwrap();
            body
        }
        (None, Some("chunked")) => read_chunked(&mut client.0).unwrap(),
        _ => Vec::new(),
    };
    let dates = lines.iter().filter(|line| line.starts_with("date: ")).count();
    assert_eq!(dates, 1, "{head}");
    lines.retain(|line| !line.starts_with("date: ") || line.contains("1970"));
    (lines, String::from_utf8(body).unwrap())
}

/// The bytes that an upstream sends: for `HEAD`, only the head.
fn part(text: &'static str, method: &str) -> &'static [u8] {
    let heads = if text.contains(" 103 ") { 2 } else { 1 };
    let end = text.match_indices("\r\n\r\n").nth(heads - 1).unwrap().0 + 4;
    if method == "HEAD" { &text.as_bytes()[..end] } else { text.as_bytes() }
}

#[test]
fn clients_get_the_same() {
    let backend = Backend::new(|seen, stream| {
        let mut words = seen.line().split(['/', ' ']);
        let (method, number) = (words.next().unwrap(), words.nth(1).unwrap());
        let (text, keeps) = ANSWERS[number.parse::<usize>().unwrap()];
        stream.write_all(part(text, method)).unwrap();
        keeps
    });
    // Requests cost next to nothing, so that the figures do not change.
    let policy = "headers: [draft-11, x-ratelimit-delta]
limits: [{name: a, algorithm: gcra, rate: 100000/s, mode: enforce}]";
    let gateway = Gateway::before(&backend, policy);
    for (number, given) in ANSWERS.iter().enumerate() {
        for method in ["GET", "HEAD", "POST"] {
            let [short, long] = ["", LONG].map(|more| {
                let mut client = gateway.client();
                let head = format!("{method} /{number} HTTP/1.1\r\nhost: x\r\n{more}\r\n");
                client.send(head.as_bytes());
                let first = whole(&mut client, method);
                // The connection stays open.
                client.send(head.as_bytes());
                assert_eq!(whole(&mut client, method).1, first.1, "{head}");
                first
            });
            assert_eq!(short, long, "{method} {given:?}");
        }
    }
}
