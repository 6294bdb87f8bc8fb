//! Requests whose bodies have arrived whole.

use super::{Backend, Gateway, LONG, ok, sorted};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests without their last line, before which a test may add a hop-by-hop header.
const REQUESTS: [(&str, &str); 9] = [
    (
        "POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\ncontent-type: application/json\r\n",
        "{\"a\": 1}\n",
    ),
    ("POST /a HTTP/1.1\r\nhost: x\r\nContent-Length: 0\r\n", ""),
    ("POST /a HTTP/1.1\r\nhost: x\r\n", ""),
    ("PUT /a HTTP/1.1\r\nhost: x\r\ncontent-length: 05\r\n", "hello"),
    ("PATCH /a?b HTTP/1.1\r\ncontent-length: 2\r\nhost: x\r\ncontent-encoding: gzip\r\n", "\0\n"),
    ("DELETE /a HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n", "\r\n\r\n"),
    ("GET /a HTTP/1.1\r\nhost: x\r\ncontent-length: 28\r\n", "GET /x HTTP/1.1\r\nHost: b\r\n\r\n"),
    ("OPTIONS /a HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\nx-forwarded-for: 1.2.3.4\r\n", "x"),
    ("POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\nX_Real_IP: 1.2.3.4\r\n", "x"),
];

#[test]
fn servers_see_the_same() {
    for host in ["preserve", "upstream"] {
        let backend = Backend::usual();
        let upstream = format!("{{servers: {}, host: {host}}}", backend.url());
        let gateway =
            Gateway::new(&format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: {upstream}\n"));
        for (head, body) in REQUESTS {
            for more in ["", LONG] {
                let mut client = gateway.client();
                client.send(format!("{head}{more}\r\n{body}").as_bytes());
                assert_eq!(client.answer().status, 200, "{head}");
            }
            let seen = backend.seen();
            let [short, long] = [2, 1].map(|back| &seen[seen.len() - back]);
            assert_eq!(sorted(&short.head), sorted(&long.head), "{head}");
            assert_eq!([&short.body, &long.body], [body.as_bytes(); 2], "{head}");
        }
    }
}

/// A streamed response belongs to its request, whose body is sent once.
#[test]
fn a_body_is_sent_once_though_its_answer_goes_the_long_way() {
    let backend = Backend::new(|seen, stream| {
        let unusual = "HTTP/1.1 200 Fine\r\ncontent-length: 2\r\n\r\nok";
        match seen.line().contains("/unusual") {
            true => std::io::Write::write_all(stream, unusual.as_bytes()).is_ok(),
            false => ok(stream, seen.line()),
        }
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    let post = |path: &str, body: &str| {
        let length = body.len();
        format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    // The next request is pipelined.
    client.send([post("/unusual", "abc"), post("/next", "def")].concat().as_bytes());
    assert_eq!(client.answer().body, "ok");
    assert_eq!(client.answer().body, "POST /next HTTP/1.1");
    let bodies: Vec<_> = backend.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, [b"abc", b"def"]);
}

/// A request that the upstream may have got is not retried, unless it has no body and its method is
/// idempotent.
#[test]
fn what_an_idle_connection_swallows_is_not_sent_again() {
    for (request, times) in [
        ("POST / HTTP/1.1\r\nhost: x\r\n\r\n", 1),
        ("PATCH / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", 1),
        ("PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\na", 1),
        ("DELETE / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\na", 1),
        ("PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", 2),
    ] {
        let asked = AtomicUsize::new(0);
        // The upstream reads the second request on the first connection, and does not answer it.
        let backend = Backend::new(move |seen, stream| {
            let is_first = asked.fetch_add(1, Ordering::SeqCst) == 0;
            (is_first || seen.connection > 0) && ok(stream, "hello")
        });
        let gateway = Gateway::before(&backend, "");
        let mut client = gateway.client();
        client.send(b"GET /first HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(client.answer().status, 200);
        client.send(request.as_bytes());
        let expected = if times == 1 { 502 } else { 200 };
        assert_eq!(client.answer().status, expected, "{request}");
        assert_eq!(backend.seen().len(), 1 + times, "{request}");
    }
}
