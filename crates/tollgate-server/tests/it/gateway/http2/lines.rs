//! Requests to an HTTP/2 upstream: their contents, and the connections that they use.

use super::super::get;
use super::{Manner, Two};
use std::{
    io::{Read, Write},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

#[test]
fn requests_say_what_they_said() {
    let server = Two::new(Manner::default());
    let gateway = server.gateway("");
    let mut client = gateway.client();
    client.send(
        b"POST /a%3Fb?q=1 HTTP/1.1\r\nhost: example.org\r\ncontent-length: 2\r\nconnection: x-a\r\nx-a: 1\r\n\r\nok",
    );
    let answer = client.answer();
    assert_eq!(
        (answer.status, &*answer.body),
        (200, "HTTP/2.0 POST /a%3Fb?q=1 example.org None ok")
    );
}

#[test]
fn trailers_pass_in_both_directions() {
    let server = Two::new(Manner::default());
    let gateway = server.gateway("");
    let mut client = gateway.client();
    client.send(
        b"POST /trailers HTTP/1.1\r\nhost: x\r\nte: trailers\r\ntrailer: x-end\r\nconnection: close\r\n\
          transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-end: 1\r\n\r\n",
    );
    let text = super::super::rest(&mut client);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("HTTP/2.0 POST /trailers x Some(\"1\") a"), "{text}");
    assert!(text.ends_with("\r\n0\r\nx-sum: 7\r\n\r\n"), "{text}");
}

/// Each piece is echoed before the next one is sent.
#[test]
fn bodies_stream_in_both_directions() {
    let server = Two::new(Manner::default());
    let gateway = server.gateway("");
    let mut client = gateway.client();
    client.send(b"POST /stream HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    let head = super::super::read_head(&mut client.0).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    for piece in ["5\r\nfirst\r\n", "6\r\nsecond\r\n", "0\r\n\r\n"] {
        client.0.write_all(piece.as_bytes()).unwrap();
        let mut back = vec![0; piece.len()];
        client.0.read_exact(&mut back).unwrap();
        assert_eq!(String::from_utf8(back).unwrap(), piece);
    }
}

fn at_once(gateway: &super::Gateway, count: usize, path: &str) {
    let address = gateway.address();
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| assert_eq!(get(address, path, "").status, 200));
        }
    });
}

/// All requests are sent before the first response, and a worker has one connection for all of
/// them.
#[test]
fn requests_share_a_connection() {
    let server = Two::new(Manner { together: 40, ..Manner::default() });
    let gateway = server.gateway("");
    at_once(&gateway, 40, "/together");
    let workers = thread::available_parallelism().unwrap().get();
    let connections = server.connections.load(Ordering::SeqCst);
    assert!((1..=workers).contains(&connections), "{connections} of {workers} workers");
}

/// An upstream may accept fewer concurrent streams than there are requests.
#[test]
fn requests_that_a_connection_has_no_room_for_are_answered() {
    let server = Two::new(Manner { streams: Some(1), ..Manner::default() });
    let gateway = server.gateway("");
    at_once(&gateway, 20, "/");
}

/// An upstream that drains its connection with GOAWAY loses no request, even if the next one is
/// already in transit.
#[test]
fn servers_that_go_away_lose_nothing() {
    let server = Two::new(Manner { brief: true, ..Manner::default() });
    let gateway = server.gateway("");
    let mut client = gateway.client();
    for _ in 0..50 {
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
        assert_eq!(client.answer().status, 200);
    }
    assert!(server.connections.load(Ordering::SeqCst) > 10);
}

/// An upstream that refuses each stream without processing it.
fn refuses_streams() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::<AtomicUsize>::default();
    let count = seen.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let count = count.clone();
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(stream).await.unwrap();
                    while let Some(Ok((_, mut respond))) = connection.accept().await {
                        count.fetch_add(1, Ordering::SeqCst);
                        respond.send_reset(h2::Reason::REFUSED_STREAM);
                    }
                });
            }
        });
    });
    (address, seen)
}

/// A request whose body was already sent is not retried without its body.
#[test]
fn an_upload_that_was_refused_is_sent_once() {
    let (address, seen) = refuses_streams();
    let gateway = super::Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: 'http://{address}', protocol: http2}}\n"
    ));
    let mut client = gateway.client();
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    assert_eq!(client.answer().status, 502);
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    assert_eq!(gateway.get("/", "").status, 502);
    assert!(seen.load(Ordering::SeqCst) > 2, "what may be sent again is");
}

/// An upstream that does not speak HTTP/2 is unavailable.
#[test]
fn servers_of_http1_are_bad_gateways() {
    let backend = super::super::Backend::usual();
    let gateway = super::Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: '{}', protocol: http2}}\n",
        backend.url()
    ));
    assert_eq!(gateway.get("/", "").status, 502);
}

/// Health checks use HTTP/2 too.
#[test]
fn health_is_asked_for_by_http2() {
    let server = Two::new(Manner::default());
    let gateway = super::Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: ['http://{}', 'http://127.0.0.1:1'], protocol: http2, balance: round-robin, health: {{path: /, interval: 10ms, unhealthy_after: 1}}}}\n",
        server.address
    ));
    while server.connections.load(Ordering::SeqCst) < 3 {
        thread::yield_now();
    }
    for _ in 0..10 {
        assert_eq!(gateway.get("/", "").status, 200);
    }
}
