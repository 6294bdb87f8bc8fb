//! The request that an upstream gets, and the response that a client gets.

use super::{Backend, Gateway, ok};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io::Write;

/// Request headers, the policy, and the header values that the upstream gets; `None` stands for a
/// value that varies.
const FIELDS: &[(&str, &str, &str, &[&str])] = &[
    ("", "", "x-forwarded-for", &["127.0.0.1"]),
    ("", "", "x-forwarded-proto", &["http"]),
    ("", "", "x-forwarded-host", &["x"]),
    ("", "", "x-real-ip", &["127.0.0.1"]),
    ("", "", "via", &["1.1 tollgate"]),
    ("", "via: 1.0 other\r\n", "via", &["1.0 other", "1.1 tollgate"]),
    // Forwarding headers of untrusted peers are dropped.
    ("", "x-forwarded-for: 9.9.9.9\r\nx-real-ip: 9.9.9.9\r\n", "x-forwarded-for", &["127.0.0.1"]),
    ("", "x-real-ip: 9.9.9.9\r\n", "x-real-ip", &["127.0.0.1"]),
    ("", "x-forwarded-prefix: /admin\r\n", "x-forwarded-prefix", &[]),
    ("", "forwarded: for=9.9.9.9\r\n", "forwarded", &[]),
    // Those of trusted proxies are kept.
    (
        "trusted_proxies: [127.0.0.1]",
        "x-forwarded-for: 9.9.9.9\r\n",
        "x-forwarded-for",
        &["9.9.9.9, 127.0.0.1"],
    ),
    ("trusted_proxies: [127.0.0.1]", "x-forwarded-for: 9.9.9.9\r\n", "x-real-ip", &["9.9.9.9"]),
    (
        "trusted_proxies: [127.0.0.1]",
        "x-forwarded-proto: https\r\n",
        "x-forwarded-proto",
        &["https"],
    ),
    // An empty header is ignored.
    ("trusted_proxies: [127.0.0.1]", "x-forwarded-for:\r\n", "x-forwarded-for", &["127.0.0.1"]),
    (
        "trusted_proxies: [127.0.0.1]",
        "x-forwarded-for: 9.9.9.9\r\nx-forwarded-for: \r\n",
        "x-forwarded-for",
        &["9.9.9.9, 127.0.0.1"],
    ),
    ("trusted_proxies: [127.0.0.1]", "x-forwarded-proto:\r\n", "x-forwarded-proto", &["http"]),
    ("trusted_proxies: [127.0.0.1]", "x-forwarded-host:\r\n", "x-forwarded-host", &["x"]),
    // A client cannot remove a counted header by listing it in `Connection`.
    (
        "trusted_proxies: [127.0.0.1]",
        "x-forwarded-for: 9.9.9.9\r\nconnection: X-Forwarded-For\r\n",
        "x-forwarded-for",
        &["9.9.9.9, 127.0.0.1"],
    ),
    (
        "identity: {user: header.x-user-id}\nlimits: [{name: a, key: [user], rate: 9/s}]",
        "x-user-id: 7\r\nconnection: x-user-id\r\n",
        "x-user-id",
        &["7"],
    ),
    (
        "identity: {user: header.x-user-id}\nlimits: [{name: a, key: [user], rate: 9/s}]",
        "x_user_id: 7\r\n",
        "x_user_id",
        &[],
    ),
    ("", "x_forwarded_for: 9.9.9.9\r\n", "x_forwarded_for", &[]),
    ("", "x~forwarded!for: 9.9.9.9\r\n", "x~forwarded!for", &[]),
    ("", "content|length: 9\r\n", "content|length", &[]),
    ("", "x.forwarded.for: 9.9.9.9\r\n", "x.forwarded.for", &[]),
    // Hop-by-hop headers are not forwarded.
    ("", "connection: x-own, keep-alive\r\nx-own: 1\r\nkeep-alive: 5\r\n", "x-own", &[]),
    ("", "keep-alive: 5\r\nproxy-connection: x\r\n", "keep-alive", &[]),
    ("", "te: gzip\r\nproxy-authorization: x\r\n", "proxy-authorization", &[]),
];

#[test]
fn servers_see_what_we_vouch_for() {
    for (more, sent, name, expected) in FIELDS {
        let backend = Backend::usual();
        let gateway = Gateway::before(&backend, more);
        assert_eq!(gateway.get("/", sent).status, 200, "{sent:?}");
        let seen = backend.seen();
        assert_eq!(seen[0].all(name), *expected, "{more:?} {sent:?}: {}", seen[0].head);
    }
}

const OVERRIDES: [&str; 9] = [
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
    "x-override-url",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-method",
    "x_http_method_override",
];

/// An upstream that obeys an override header would serve another request than was counted.
#[test]
fn override_headers_end_here() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "trusted_proxies: [127.0.0.1]");
    let passing = Gateway::new(&format!(
        "listen: {{gateway: {{address: '127.0.0.1:0', override_headers: pass}}}}\nupstream: {}\n",
        backend.url()
    ));
    for name in OVERRIDES {
        let line = format!("{name}: DELETE\r\n");
        // With and without a hop-by-hop header.
        for more in ["", "te: trailers\r\n"] {
            assert_eq!(gateway.get("/", &format!("{line}{more}")).status, 200);
            let seen = backend.seen().pop().unwrap();
            assert_eq!(seen.all(name), [""; 0], "{name} {more}: {}", seen.head);
            // A lookalike header is removed in either case.
            let expected: &[&str] = if name.contains('_') { &[] } else { &["DELETE"] };
            assert_eq!(passing.get("/", &format!("{line}{more}")).status, 200);
            let seen = backend.seen().pop().unwrap();
            assert_eq!(seen.all(name), expected, "{name} {more}: {}", seen.head);
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        for method in ["GET", "POST"] {
            let mut request = hyper::Request::builder()
                .method(method)
                .uri(format!("http://{}/", gateway.address()));
            for name in OVERRIDES {
                request = request.header(name, "DELETE");
            }
            let request = request.body(Full::new(Bytes::from("x"))).unwrap();
            assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
            let seen = backend.seen().pop().unwrap();
            assert!(OVERRIDES.iter().all(|name| seen.all(name).is_empty()), "{}", seen.head);
        }
    });
}

/// `Via` has the HTTP version of the client's connection, whatever the upstream's is.
#[test]
fn via_names_the_version_that_the_client_spoke() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"GET / HTTP/1.0\r\nvia: 1.1 other\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::get(format!("http://{}/", gateway.address()));
        let request = request.header("via", "1.1 other").body(Full::new(Bytes::new())).unwrap();
        assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    });
    let seen: Vec<_> = backend.seen().iter().map(|seen| seen.all("via").join(", ")).collect();
    assert_eq!(seen, ["1.1 other, 1.0 tollgate", "1.1 other, 2 tollgate"]);
}

/// The bytes of the target, in every form that a client may write it.
#[test]
fn targets_arrive_as_they_were_sent() {
    let targets = [
        ("/a%2Fb//c/../d?x=%20&y", "/a%2Fb//c/../d?x=%20&y"),
        ("http://other.example/p?q", "/p?q"),
        ("http://other.example", "/"),
        ("/%7e/'\"", "/%7e/'\""),
    ];
    let backend = Backend::usual();
    let gateway = Gateway::new(&format!(
        "listen: {{gateway: {{address: '127.0.0.1:0', ambiguous_paths: match-all}}}}\nupstream: {}\n",
        backend.url()
    ));
    for (sent, _) in targets {
        assert_eq!(gateway.get(sent, "").status, 200, "{sent}");
    }
    let lines: Vec<String> = backend.seen().iter().map(|seen| seen.line().to_owned()).collect();
    let expected: Vec<String> =
        targets.iter().map(|(_, path)| format!("GET {path} HTTP/1.1")).collect();
    assert_eq!(lines, expected);
    assert_eq!(backend.seen()[1].all("host"), ["other.example"]);
}

#[test]
fn hosts_are_one_and_settled() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    let wrong = [
        "a b", "a/b", "", "a@b", "a:b", "a:1:2", ":1", "]", "[", "[]", "a[::1]", "[::1]a",
        "[::1]:x",
    ];
    let wrong = wrong.map(|host| format!("host: {host}\r\n"));
    for fields in wrong.iter().map(|line| &**line).chain(["", "host: a\r\nhost: b\r\n"]) {
        let mut client = gateway.client();
        client.send(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes());
        assert_eq!(client.answer().status, 400, "{fields:?}");
        assert!(client.is_ended(), "{fields:?}");
    }
    let mut client = gateway.client();
    client.send(b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 405);
    assert!(answer.field("allow").unwrap().contains("GET"), "405 says what is allowed");
    assert!(backend.seen().is_empty());

    let own = Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: {}, host: upstream}}\n",
        backend.url()
    ));
    own.get("/", "");
    let seen = backend.seen().pop().unwrap();
    assert_eq!(seen.all("host"), [backend.address.to_string()]);
    assert_eq!(seen.all("x-forwarded-host"), ["x"]);
}

#[test]
fn answers_keep_what_is_theirs() {
    let backend = Backend::new(|_, stream| {
        stream
            .write_all(
                b"HTTP/1.1 203 Fine\r\nx-a: 1\r\nx-own: 1\r\nconnection: x-own\r\nkeep-alive: 5\r\n\
                  set-cookie: a\r\nset-cookie: b\r\ncontent-length: 2\r\n\r\nok",
            )
            .is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    let answer = gateway.get("/", "");
    assert_eq!((answer.status, &*answer.body), (203, "ok"));
    assert_eq!(answer.field("x-a"), Some("1"));
    assert_eq!((answer.field("x-own"), answer.field("keep-alive")), (None, None));
    assert_eq!(answer.fields.iter().filter(|field| field.0 == "set-cookie").count(), 2);
}

#[test]
fn hosts_with_and_without_ports_pass() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    for host in ["a", "a:1", "a:", "a.b-c_d%20", "[::1]", "[::1]:80", "[fe80::1%25x]", "1.2.3.4:5"]
    {
        let mut client = gateway.client();
        client.send(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes());
        assert_eq!(client.answer().status, 200, "{host}");
        assert_eq!(backend.seen().pop().unwrap().all("host"), [host]);
    }
}

/// A request with `Max-Forwards: 0` ends here; in other requests the header is decremented.
#[test]
fn requests_that_count_their_steps_are_counted() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    let cases = [
        ("OPTIONS /", "0", 200, None),
        ("OPTIONS *", "0", 200, None),
        ("TRACE /", "0", 501, None),
        ("OPTIONS /", "1", 200, Some("0")),
        ("OPTIONS *", "3", 200, Some("2")),
        ("TRACE /", "10", 501, None),
        ("TRACE /", "many", 501, None),
        ("OPTIONS /", "many", 200, Some("many")),
        ("GET /", "0", 200, Some("0")),
    ];
    for (line, said, status, passed) in cases {
        let mut client = gateway.client();
        let text = format!("{line} HTTP/1.1\r\nhost: x\r\nmax-forwards: {said}\r\n\r\n");
        client.send(text.as_bytes());
        assert_eq!(client.answer().status, status, "{text}");
        let seen = backend.seen.lock().unwrap().pop();
        let seen = seen.as_ref().map(|seen| seen.all("max-forwards"));
        assert_eq!(seen, passed.map(|left| vec![left]), "{text}");
    }
}

/// An HTTP/1.0 client may omit `Host`, and gets no chunked response.
#[test]
fn old_clients_are_understood() {
    let backend = Backend::new(|seen, stream| match seen.line().contains("/chunks") {
        false => ok(stream, "hello"),
        true => {
            // Too large to be buffered, so its length is unknown when its head is written.
            let data = "x".repeat(20_000);
            let text = format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4e20\r\n{data}\r\n0\r\n\r\n"
            );
            stream.write_all(text.as_bytes()).is_ok()
        }
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    for _ in 0..2 {
        client.send(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.field("connection"), &*answer.body), (Some("keep-alive"), "hello"));
    }
    client.send(b"GET /chunks HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    let answer = client.head();
    assert_eq!(answer.field("transfer-encoding"), None);
    assert_eq!(answer.field("connection"), Some("close"));
    assert_eq!(super::rest(&mut client), "x".repeat(20_000));
    let seen = backend.seen().pop().unwrap();
    assert_eq!(seen.all("host"), [backend.address.to_string()]);
    assert_eq!((seen.all("via"), seen.all("x-forwarded-host")), (vec!["1.0 tollgate"], vec![]));
}

/// A response that cannot have a body has no length.
#[test]
fn no_content_has_no_length() {
    let backend = Backend::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n").is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    for method in ["GET", "HEAD"] {
        client.send(format!("{method} / HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        let answer = client.head();
        assert_eq!((answer.status, answer.field("content-length")), (204, None), "{method}");
    }
}

/// The client gets one length, in the usual form.
#[test]
fn lengths_are_said_once() {
    let cases: [(&str, Option<&str>); 6] = [
        ("content-length: 2\r\n", Some("2")),
        ("content-length: 002\r\n", Some("2")),
        ("content-length: 2, 2\r\n", Some("2")),
        ("content-length: 2\r\ncontent-length: 02\r\n", Some("2")),
        ("content-length: 2, 3\r\n", None),
        ("content-length: 2\r\ncontent-length: 3\r\n", None),
    ];
    for (lines, expected) in cases {
        let backend = Backend::new(move |seen, stream| {
            let body = if seen.line().starts_with("HEAD") { "" } else { "ok" };
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}").as_bytes()).is_ok()
        });
        let gateway = Gateway::before(&backend, "");
        for method in ["GET", "HEAD"] {
            let mut client = gateway.client();
            client.send(format!("{method} / HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
            let head = client.head();
            let said = head.fields.iter().filter(|field| field.0 == "content-length");
            let said: Vec<&str> = said.map(|field| &*field.1).collect();
            match expected {
                Some(length) => assert_eq!((head.status, said), (200, vec![length]), "{lines:?}"),
                None => assert_eq!(head.status, 502, "{method} {lines:?}"),
            }
        }
    }
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 003\r\n\r\nabc");
    assert_eq!(client.answer().status, 200);
    assert_eq!(backend.seen()[0].all("content-length"), ["3"]);
}

/// Requests of several clients share one upstream connection.
#[test]
fn connections_are_used_again() {
    let backend = Backend::new(|_, stream| ok(stream, "x"));
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    for _ in 0..20 {
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(client.answer().status, 200);
    }
    let connections = backend.connections.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!((connections, backend.seen().len()), (1, 20));
}
