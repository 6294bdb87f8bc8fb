//! Streamed bodies in both directions, with `Expect`, trailers and early responses.

use super::{Backend, Gateway, signal, wait};
use std::io::{Read, Write};

/// Reads exactly this text.
#[track_caller]
fn expect(stream: &mut impl Read, text: &str) {
    let mut got = vec![0; text.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), text);
}

fn head(stream: &mut std::net::TcpStream) -> String {
    super::read_head(stream).expect("a head")
}

/// The first piece arrives before the upstream sends the second.
#[test]
fn answers_stream() {
    let (go, gone) = signal();
    let backend = Backend::new(move |_, stream| {
        let first = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
        stream.write_all(first).unwrap();
        wait(&gone);
        stream.write_all(b"6\r\nsecond\r\n0\r\n\r\n").is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(head(&mut client.0).contains("transfer-encoding: chunked"));
    expect(&mut client.0, "5\r\nfirst\r\n");
    go.send(()).unwrap();
    expect(&mut client.0, "6\r\nsecond\r\n0\r\n\r\n");
}

/// The upstream has the first piece before the client sends the second.
#[test]
fn requests_stream() {
    let (go, gone) = signal();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        head(&mut stream);
        expect(&mut stream, "5\r\nfirst\r\n");
        go.send(()).unwrap();
        expect(&mut stream, "6\r\nsecond\r\n0\r\n\r\n");
        super::ok(&mut stream, "done");
    });
    let gateway =
        Gateway::new(&format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{address}\n"));
    let mut client = gateway.client();
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    wait(&gone);
    client.send(b"6\r\nsecond\r\n0\r\n\r\n");
    assert_eq!(client.answer().body, "done");
    server.join().unwrap();
}

#[test]
fn trailers_pass_in_both_directions() {
    let backend = Backend::new(|_, stream| {
        let text = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\
                     trailer: x-sum, ratelimit\r\n\r\n\
                     1\r\na\r\n0\r\nx-sum: 7\r\nratelimit: \"a\";r=1\r\n\r\n";
        stream.write_all(text).is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    client.send(
        b"POST / HTTP/1.1\r\nhost: x\r\nte: trailers\r\ntrailer: x-end, content-length\r\n\
          transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-end: 1\r\ncontent-length: 5\r\n\r\n",
    );
    let answer = head(&mut client.0);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    expect(&mut client.0, "1\r\na\r\n0\r\nx-sum: 7\r\n\r\n");
    let seen = backend.seen();
    assert_eq!(String::from_utf8_lossy(&seen[0].body), "1\r\na\r\n0\r\nx-end: 1\r\n\r\n");
    assert_eq!(seen[0].all("te"), ["trailers"]);
}

/// The gateway sends no `100 Continue` for a refused request.
#[test]
fn continue_is_said_to_those_who_pass() {
    let backend = Backend::usual();
    let file = "limits: [{name: a, rate: 1/h, algorithm: fixed-window}]";
    let gateway = Gateway::before(&backend, file);
    let request =
        b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    let mut client = gateway.client();
    client.send(request);
    expect(&mut client.0, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(b"ok");
    assert_eq!(client.answer().status, 200);
    let seen = backend.seen();
    assert_eq!((&seen[0].body[..], seen[0].all("expect").len()), (&b"ok"[..], 0));
    let mut client = gateway.client();
    client.send(request);
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("connection")), (429, Some("close")));
    assert!(client.is_ended());
}

/// A short unread body of a refused request is drained, and the connection persists. Otherwise the
/// response has `Connection: close`.
#[test]
fn refusals_say_whether_the_connection_goes_on() {
    let backend = Backend::usual();
    let gateway = Gateway::before(&backend, "limits: [{name: a, rate: 0/h}]");
    let mut client = gateway.client();
    for _ in 0..3 {
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n");
        client.send(b"abc");
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("connection")), (429, None));
    }
    for framing in ["content-length: 65537", "transfer-encoding: chunked"] {
        let mut client = gateway.client();
        client.send(format!("POST / HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n").as_bytes());
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("connection")), (429, Some("close")), "{framing}");
        assert!(client.is_ended(), "{framing}");
    }
}

/// If no upstream can be reached, a long unread body closes the connection too.
#[test]
fn faults_say_that_the_connection_ends_with_a_body_unread() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway =
        Gateway::new(&format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{nobody}\n"));
    let mut client = gateway.client();
    client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("connection")), (502, None));
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nabc");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("connection")), (502, Some("close")));
    assert!(client.is_ended());
}

#[test]
fn answers_without_bodies() {
    let backend = Backend::new(|seen, stream| {
        let text: &[u8] = match seen.line().split(' ').nth(1) {
            Some("/head") => b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n",
            Some("/204") => b"HTTP/1.1 204 No Content\r\n\r\n",
            _ => b"HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n",
        };
        stream.write_all(text).is_ok()
    });
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    for (method, path, status) in
        [("HEAD", "/head", 200), ("GET", "/204", 204), ("GET", "/304", 304)]
    {
        client.send(format!("{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        let answer = head(&mut client.0);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert_eq!(answer.contains("content-length: 1000"), method == "HEAD", "{answer}");
    }
    // All on one connection, so no body followed any of them.
    assert_eq!(backend.connections.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// Ten megabytes in each direction, whole.
#[test]
fn large_bodies_arrive() {
    let large = "x".repeat(10 << 20);
    let backend = Backend::new(|seen, stream| super::ok(stream, &"y".repeat(seen.body.len())));
    let gateway = Gateway::before(&backend, "");
    let mut client = gateway.client();
    let length = large.len();
    client.send(
        format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{large}").as_bytes(),
    );
    let answer = client.answer();
    assert_eq!((answer.status, answer.body.len()), (200, length));
}

/// An early response of the upstream reaches the client before the request's body is complete.
#[test]
fn early_answers_are_passed_on() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n").unwrap();
        stream
    });
    let gateway =
        Gateway::new(&format!("listen: {{gateway: '127.0.0.1:0'}}\nupstream: http://{address}\n"));
    let mut client = gateway.client();
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\npart");
    assert_eq!(client.answer().status, 413);
    drop(server.join().unwrap());
}

/// Headers that identify the client cannot be trailers.
#[test]
fn trailers_cannot_say_who_asks() {
    let backend = Backend::usual();
    let policy = "identity: {user: header.x-user}\nlimits: [{name: a, key: [user], rate: 9/h}]";
    let gateway = Gateway::before(&backend, policy);
    let names = "x-sum, x-user, X_User, x-forwarded-for, x-real-ip, forwarded, via, keep-alive";
    let trailers: String = names.split(", ").map(|name| format!("{name}: forged\r\n")).collect();
    let mut client = gateway.client();
    client.send(
        format!(
            "POST / HTTP/1.1\r\nhost: x\r\nx-user: u\r\nte: trailers\r\ntrailer: {names}\r\ntransfer-encoding: chunked\r\n\r\n\
             2\r\nok\r\n0\r\n{trailers}\r\n"
        )
        .as_bytes(),
    );
    assert_eq!(client.answer().status, 200);
    let body = String::from_utf8(backend.seen()[0].body.clone()).unwrap();
    assert_eq!(body, "2\r\nok\r\n0\r\nx-sum: forged\r\n\r\n");
}
