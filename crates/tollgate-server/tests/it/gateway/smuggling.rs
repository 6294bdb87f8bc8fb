//! Requests whose end two servers could read differently: the upstream gets none of them, or reads
//! them as the gateway does.

use super::{Backend, Gateway, rest};
use std::net::Shutdown;

/// A case: its name, the bytes sent, the statuses of the answers, and the request lines that the
/// upstream got.
pub(super) type Case = (&'static str, &'static [u8], &'static [u16], &'static [&'static str]);

const ONE: &[&str] = &["POST / HTTP/1.1"];
const NONE: &[&str] = &[];

pub(super) const CORPUS: &[Case] = &[
    ("plain", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", &[200], ONE),
    ("chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", &[200], ONE),
    ("CL.TE", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", &[400], NONE),
    ("TE.CL", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\nGPOST / HTTP/1.1\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("TE.TE, second obscure", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("TE.TE, both chunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("TE list", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("TE twice in one", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("TE identity", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\na", &[400], NONE),
    ("TE xchunked", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("TE with tab", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", &[200], ONE),
    ("TE vertical tab", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("TE quoted", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("space before colon", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("length with space before colon", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\nabc", &[400], NONE),
    ("obs-fold", b"POST / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n", &[400], NONE),
    ("obs-fold in TE", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("fold before the first field", b"POST / HTTP/1.1\r\n Host: a\r\nContent-Length: 0\r\n\r\n", &[400], NONE),
    ("lengths differ", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", &[400], NONE),
    ("lengths repeat", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", &[400], NONE),
    ("length list", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", &[400], NONE),
    ("length plus", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", &[400], NONE),
    ("length minus", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\nabc", &[400], NONE),
    ("length hex", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc", &[400], NONE),
    ("length empty", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nabc", &[400], NONE),
    ("length too large", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nabc", &[400], NONE),
    ("length underscore", b"POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 3\r\n\r\n", &[200], ONE),
    ("1.0 with TE", b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("bare LF in head", b"POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n", &[400], NONE),
    ("bare LF after a field", b"POST / HTTP/1.1\r\nHost: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &[400], NONE),
    ("bare LF as end", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\n", &[400], NONE),
    ("bare CR", b"POST / HTTP/1.1\r\nHost: a\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n", &[400], NONE),
    ("NUL in value", b"POST / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n", &[400], NONE),
    ("no colon", b"POST / HTTP/1.1\r\nHost: a\r\nnonsense\r\nContent-Length: 0\r\n\r\n", &[400], NONE),
    ("empty name", b"POST / HTTP/1.1\r\nHost: a\r\n: x\r\nContent-Length: 0\r\n\r\n", &[400], NONE),
    ("two who ask", b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic x\r\nauthorization: Bearer y\r\n\r\n", &[400], NONE),
    ("two hosts", b"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n", &[400], NONE),
    ("version 2 in the line", b"POST / HTTP/2.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n", &[400], NONE),
    ("no version", b"GET /\r\n\r\n", &[400], NONE),
    ("two spaces", b"POST  / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", &[400], NONE),
    ("chunk bare LF", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", &[400], NONE),
    ("chunk size with space", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n", &[400], NONE),
    ("chunk size 0x", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", &[400], NONE),
    ("chunk size too large", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n", &[400], NONE),
    ("chunk size negative", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", &[400], NONE),
    ("chunk without its end", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", &[400], NONE),
    ("chunk extension with LF", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a\nb\r\nabc\r\n0\r\n\r\n", &[400], NONE),
    ("pipelined", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", &[200, 200], &["POST / HTTP/1.1", "GET /2 HTTP/1.1"]),
    ("pipelined, second bad", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\nHost: a\n\n", &[200, 400], ONE),
    ("after chunks", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", &[200, 200], &["POST / HTTP/1.1", "GET /2 HTTP/1.1"]),
    ("GET with body", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 28\r\n\r\nGET /x HTTP/1.1\r\nHost: b\r\n\r\n", &[200], &["GET / HTTP/1.1"]),
    ("length too short", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nabcdef\r\n\r\n", &[200, 400], ONE),
    ("body like a request", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 28\r\n\r\nGET /x HTTP/1.1\r\nHost: b\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", &[200, 200], &["POST / HTTP/1.1", "GET /2 HTTP/1.1"]),
    ("body like the end of chunks", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", &[200, 200], &["POST / HTTP/1.1", "GET /2 HTTP/1.1"]),
    ("two bodies, then CL.TE", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\naPUT /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nbPOST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &[200, 200, 400], &["POST / HTTP/1.1", "PUT /2 HTTP/1.1"]),
    ("no body, then one", b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\nPATCH /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nbGET /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 00\r\n\r\n", &[200, 200, 200], &["DELETE / HTTP/1.1", "PATCH /2 HTTP/1.1", "GET /3 HTTP/1.1"]),
    ("early upgrade", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", &[200, 200], &["GET / HTTP/1.1", "GET /2 HTTP/1.1"]),
    ("early upgrade, then nonsense", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05\nhello\r\n\r\n", &[200, 400], &["GET / HTTP/1.1"]),
    ("upgrade to h2c", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", &[200], &["GET / HTTP/1.1"]),
    ("PROXY header where none is", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x01\x02\x03\x04\0\x50\0\x50GET / HTTP/1.1\r\nHost: a\r\n\r\n", &[400], NONE),
    ("PROXY line where none is", b"PROXY TCP4 1.2.3.4 1.2.3.4 80 80\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", &[400], NONE),
];

/// An incomplete request is not forwarded, and the bytes after it are not part of it.
#[test]
fn a_length_that_is_too_long_is_no_request() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.0.shutdown(Shutdown::Write).unwrap();
    assert!(!statuses(&rest(&mut client)).contains(&200));
    assert!(backend.seen().is_empty());
}

/// The statuses in a stream of answers, each of which has a length.
fn statuses(mut text: &str) -> Vec<u16> {
    let mut found = Vec::new();
    while let Some((head, after)) = text.split_once("\r\n\r\n") {
        found.push(head.split(' ').nth(1).unwrap().parse().unwrap());
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        text = &after[length.map_or(0, |length| length.parse().unwrap())..];
    }
    assert!(text.is_empty(), "{text:?}");
    found
}

/// The upstream would serve `/` for a request that no limit on paths matches.
#[test]
fn a_target_that_is_no_path_goes_nowhere() {
    for (line, status) in [
        ("GET x HTTP/1.1", 400),
        ("GET a:443 HTTP/1.1", 400),
        ("POST user@a HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400),
        ("GET ftp://a/b HTTP/1.1", 400),
        ("GET https://a/b HTTP/1.1", 200),
        ("GET /a#b HTTP/1.1", 400),
        ("GET /a?b#c HTTP/1.1", 400),
        ("GET http://a/b#c HTTP/1.1", 400),
        ("GET /# HTTP/1.1", 400),
        ("GET /a%23b HTTP/1.1", 200),
        ("OPTIONS * HTTP/1.1", 200),
        ("GET http://a HTTP/1.1", 200),
        ("GET http://a/b HTTP/1.1", 200),
    ] {
        let backend = Backend::usual();
        let gateway = Gateway::before(&backend, "");
        let mut client = gateway.client();
        let sent = format!("{line}\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        std::io::Write::write_all(&mut client.0, sent.as_bytes()).unwrap();
        assert_eq!(client.answer().status, status, "{line}");
        assert_eq!(backend.seen().len(), usize::from(status == 200), "{line}");
    }
}

#[test]
fn the_corpus() {
    let mut wrong = Vec::new();
    for (name, sent, expected, lines) in CORPUS {
        // In one piece, in two, and byte by byte.
        for size in [sent.len(), sent.len() / 2, 1] {
            let backend = Backend::usual();
            let gateway = Gateway::before(&backend, "");
            let mut client = gateway.client();
            client.0.set_nodelay(true).unwrap();
            for piece in sent.chunks(size.max(1)) {
                // The gateway may have closed already.
                if std::io::Write::write_all(&mut client.0, piece).is_err() {
                    break;
                }
            }
            let got = answers(&mut client, expected.len());
            let seen = backend.seen();
            let seen: Vec<&str> = seen.iter().map(|seen| seen.line()).collect();
            if got != *expected || seen != *lines {
                wrong.push(format!("{name} by {size}: {got:?}, the server saw {seen:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reads the expected number of answers, and all bytes until the connection closes.
fn answers(client: &mut crate::http::Client, count: usize) -> Vec<u16> {
    let mut found = Vec::new();
    for _ in 0..count {
        let answer = client.answer();
        found.push(answer.status);
        if answer.status == 400 {
            assert!(client.is_ended(), "open after 400");
            return found;
        }
    }
    client.0.shutdown(Shutdown::Write).unwrap();
    found.extend(statuses(&rest(client)));
    found
}
