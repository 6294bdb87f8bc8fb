//! Which requests are plain.

use super::{Bare, Begins, begins, find};

fn head(more: &str) -> String {
    format!("GET / HTTP/1.1\r\nhost: x\r\n{more}\r\n")
}

fn is_plain(text: &str) -> bool {
    let found = find(text.as_bytes(), &mut Vec::new()).map(|(_, head)| head);
    matches!(begins(text.as_bytes()), Begins::Sized { head, .. } if found == Some(head))
}

#[test]
fn a_plain_request_is_found_with_all_it_has() {
    let text = "\r\nDELETE /a?b HTTP/1.1\r\nHost: X:80\r\nempty:\r\nSpaced:  a b \r\n\r\nGET / HTTP/1.1\r\n";
    let mut lines = Vec::new();
    let (Bare { method, target, host, .. }, size) = find(text.as_bytes(), &mut lines).unwrap();
    assert_eq!((method, target, host), ("DELETE", "/a?b", &b"X:80"[..]));
    assert!(text[size..].starts_with("GET"));
    let (bare, _) = find(text.as_bytes(), &mut lines).unwrap();
    let fields: Vec<_> = bare.fields().collect();
    let expected: [(&[u8], &[u8]); 3] = [(b"Host", b"X:80"), (b"empty", b""), (b"Spaced", b"a b")];
    assert_eq!(fields, expected);
}

#[test]
fn whatever_concerns_more_than_the_request_is_not_plain() {
    assert!(is_plain(&head("")));
    for more in [
        "connection: keep-alive\r\n",
        "Connection: Keep-Alive\r\n",
        "x: y\r\nx: z\r\n",
        "content-length: 0\r\n",
        "Content-Length: 5\r\n",
    ] {
        assert!(is_plain(&head(more)), "{more}");
    }
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let text = format!("{method} / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(is_plain(&text), "{text}");
    }
    let unusual = [
        "connection: close\r\n",
        "connection: keep-alive, x\r\n",
        "connection: x\r\n",
        "content-length: 1\r\ncontent-length: 1\r\n",
        "content-length: 1, 1\r\n",
        "content-length: 01\r\n",
        "content-length: 00\r\n",
        "content-length: +1\r\n",
        "content-length:\r\n",
        "content-length: 1\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\n",
        "transfer-encoding: identity\r\n",
        "te: trailers\r\n",
        "expect: 100-continue\r\n",
        "upgrade: websocket\r\n",
        "trailer: x\r\n",
        "keep-alive: 5\r\n",
        "proxy-connection: keep-alive\r\n",
        "proxy-authorization: x\r\n",
        "proxy-authenticate: x\r\n",
        "http2-settings: x\r\n",
        "x_user: 1\r\n",
        "x.user: 1\r\n",
        "host: y\r\n",
        "a: b\n",
        "a: b\r\n c\r\n",
        "a : b\r\n",
        "a\r\n",
        "a: \0\r\n",
    ];
    for more in unusual {
        assert!(!is_plain(&head(more)), "{more}");
    }
}

#[test]
fn lines_and_hosts_that_others_could_read_in_another_way_are_not_plain() {
    let lines = [
        "PROPFIND / HTTP/1.1\r\nhost: x\r\n\r\n",
        "get / HTTP/1.1\r\nhost: x\r\n\r\n",
        "CONNECT x HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/1.0\r\nhost: x\r\n\r\n",
        "GET / HTTP/2.0\r\nhost: x\r\n\r\n",
        "GET  / HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET * HTTP/1.1\r\nhost: x\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET http://x/ HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /#a HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /\u{e9} HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET /\"a HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost:\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a@b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\n",
        "GET / HTTP/1.1\nhost: x\n\n",
        "",
    ];
    for text in lines {
        assert!(!is_plain(text), "{text}");
    }
    assert!(!is_plain(&head(&"a: b\r\n".repeat(super::FIELDS_MAX))));
}
