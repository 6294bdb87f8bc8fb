//! HTTP/2 on the same sockets.

use super::*;
use crate::{Activity, ActivityStream, Headers, append_lines_to_map, headers_to_lines};
use http_body_util::{BodyExt, Empty};
use hyper::{HeaderMap, client::conn::http2, header::HeaderValue, rt::Executor};
use hyper_util::rt::TokioIo;

#[derive(Clone)]
struct TestExecutor;

impl<F: Future + 'static> Executor<F> for TestExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}

type Http2Client = http2::SendRequest<Empty<bytes::Bytes>>;

async fn client(rig: &Rig) -> Http2Client {
    let io = TokioIo::new(rig.connect());
    let (client, connection) = http2::handshake(TestExecutor, io).await.unwrap();
    tokio::task::spawn_local(connection);
    client
}

async fn ask(client: &mut Http2Client, path: &str) -> hyper::Result<String> {
    let request = hyper::Request::get(format!("http://x{path}")).body(Empty::new()).unwrap();
    let body = client.send_request(request).await?.into_body().collect().await?;
    Ok(String::from_utf8(body.to_bytes().into()).unwrap())
}

#[test]
fn requests_share_a_connection() {
    run(async {
        let rig = Rig::new(Limits::default());
        let client = client(&rig).await;
        let (mut first, mut second) = (client.clone(), client);
        let (waited, ()) = tokio::join!(ask(&mut first, "/wait"), async {
            assert_eq!(ask(&mut second, "/a").await.unwrap(), "/a");
            rig.handler.go.notify_one();
        });
        assert_eq!(waited.unwrap(), "waited");
    });
}

#[test]
fn a_panic_ends_its_own_stream() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = client(&rig).await;
        ask(&mut client, "/panic").await.unwrap_err();
        assert_eq!(ask(&mut client, "/a").await.unwrap(), "/a");
        assert_eq!(rig.stats().panics(), 1);
    });
}

#[test]
fn an_idle_connection_ends_after_a_minute_though_the_peer_is_there() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = client(&rig).await;
        ask(&mut client, "/a").await.unwrap();
        tokio::time::sleep(seconds(30)).await;
        ask(&mut client, "/a").await.unwrap();
        rig.registry.wait_until_empty().await;
        rig.passed(seconds(90));
    });
}

#[test]
fn whoever_was_idle_for_too_long_is_told_to_go() {
    run(async {
        let limits = Limits { idle: seconds(5), ..Limits::default() };
        let rig = Rig::new(limits);
        let mut client = rig.connect();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.unwrap();
        rig.passed(seconds(5));
        let mut kinds = Vec::new();
        let mut rest = &said[..];
        while let [_, high, low, kind, ..] = rest {
            kinds.push(*kind);
            rest = &rest[9 + (usize::from(*high) << 8 | usize::from(*low))..];
        }
        assert!(kinds.contains(&7), "GOAWAY is among {kinds:?}");
    });
}

#[test]
fn a_peer_that_does_not_answer_pings_is_gone() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        rig.registry.wait_until_empty().await;
        let passed = now() - rig.start;
        assert!((seconds(20)..seconds(35)).contains(&passed), "{passed:?}");
    });
}

#[test]
fn a_drain_finishes_streams_and_takes_no_more() {
    run(async {
        let rig = Rig::new(Limits::default());
        let client = client(&rig).await;
        let (mut first, mut second) = (client.clone(), client);
        let (waited, ()) = tokio::join!(ask(&mut first, "/wait"), async {
            tokio::time::sleep(seconds(1)).await;
            rig.registry.drain();
            tokio::time::sleep(seconds(1)).await;
            ask(&mut second, "/a").await.unwrap_err();
            rig.handler.go.notify_one();
        });
        assert_eq!(waited.unwrap(), "waited");
        rig.registry.wait_until_empty().await;
        rig.passed(seconds(2));
    });
}

#[test]
fn streams_that_are_opened_only_to_be_reset_end_the_connection() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut flood = Vec::new();
        for stream in (1_u32..400).step_by(2) {
            // GET, http, /, and x as the authority; then RST_STREAM with CANCEL.
            let head = [0x82, 0x86, 0x84, 0x41, 1, b'x'];
            flood.extend([0, 0, head.len() as u8, 1, 5]);
            flood.extend(stream.to_be_bytes());
            flood.extend(head);
            flood.extend([0, 0, 4, 3, 0]);
            flood.extend(stream.to_be_bytes());
            flood.extend([0, 0, 0, 8]);
        }
        client.write_all(&flood).await.unwrap();
        rig.registry.wait_until_empty().await;
        assert!(now() - rig.start < seconds(5), "closed at once, not for being idle");
        assert!(rig.handler.handled.get() <= 100, "{}", rig.handler.handled.get());
    });
}

/// Sends `frame` again and again, reads what comes back, and returns the bytes sent until the
/// connection ends or `bytes_max` are sent.
async fn flood(client: &mut DuplexStream, frame: &[u8], bytes_max: usize) -> usize {
    let (mut reads, mut writes) = tokio::io::split(client);
    let mut sent = 0;
    let frames = frame.repeat(256);
    let writing = async {
        while sent < bytes_max && writes.write_all(&frames).await.is_ok() {
            sent += frames.len();
        }
    };
    let reading = async { while reads.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {} };
    tokio::select! { () = writing => {}, () = reading => {} }
    sent
}

#[test]
fn frames_that_carry_nothing_end_the_connection() {
    let ping = b"\0\0\x08\x06\0\0\0\0\0 a ping ".as_slice();
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\xff\xff".as_slice();
    let window_update = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01".as_slice();
    for frame in [ping, settings, window_update] {
        run(async {
            let rig = Rig::new(Limits::default());
            let mut client = rig.connect();
            let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
            client.write_all(preface).await.unwrap();
            let sent = flood(&mut client, frame, 8 * 1024 * 1024).await;
            rig.registry.wait_until_empty().await;
            assert!((900_000..1_400_000).contains(&sent), "{sent} of {frame:?}");
            assert!(now() - rig.start < seconds(5), "closed at once, not for being idle");
            assert_eq!(rig.stats().expired(), 1);
        });
    }
}

#[test]
fn requests_make_room_for_more_pings() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        client.write_all(preface).await.unwrap();
        for stream in [1, 3, 5] {
            let sent = flood(&mut client, b"\0\0\x08\x06\0\0\0\0\0 a ping ", 900_000).await;
            assert!(sent >= 900_000, "{sent} before stream {stream}");
            // GET, http, /, and x as the authority.
            let head = [0, 0, 6, 1, 5, 0, 0, 0, stream, 0x82, 0x86, 0x84, 0x41, 1, b'x'];
            client.write_all(&head).await.unwrap();
            let reading = async { while client.read(&mut [0; 4096]).await.is_ok_and(|n| n > 0) {} };
            tokio::time::timeout(seconds(1), reading).await.unwrap_err();
        }
        assert_eq!(rig.handler.handled.get(), 3);
        assert_eq!(rig.stats().expired(), 0);
    });
}

#[test]
fn a_peer_is_told_to_send_little_ahead() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let (mut stream, mut connection) = (65_535, 65_535);
        // Reads everything up to the acknowledgement of our settings.
        loop {
            let mut head = [0; 9];
            client.read_exact(&mut head).await.unwrap();
            let mut frame = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            client.read_exact(&mut frame).await.unwrap();
            let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
            match (head[3], head[4]) {
                (4, 1) => break,
                (4, _) => {
                    let window = frame.chunks(6).find(|setting| setting[..2] == [0, 4]);
                    stream = window.map_or(stream, |setting| number(&setting[2..]));
                }
                (8, _) => connection += number(&frame),
                _ => {}
            }
        }
        assert!(stream <= 64 * 1024 && connection <= 64 * 1024, "{stream} {connection}");
    });
}

#[test]
fn a_head_has_the_same_number_of_fields_at_most() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = client(&rig).await;
        for (fields, status) in [(100, 200), (101, 431)] {
            let mut request = hyper::Request::get("http://x/a").body(Empty::new()).unwrap();
            for n in 0..fields {
                let name: hyper::header::HeaderName = format!("field-{n}").parse().unwrap();
                request.headers_mut().insert(name, "x".parse().unwrap());
            }
            assert_eq!(client.send_request(request).await.unwrap().status(), status, "{fields}");
        }
        assert_eq!(rig.handler.handled.get(), 1);
    });
}

/// hyper omits the body only in HTTP/1. In HTTP/2, clients treat a body as a protocol error.
#[test]
fn an_answer_to_head_has_no_body() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = client(&rig).await;
        let request = hyper::Request::head("http://x/abc").body(Empty::new()).unwrap();
        let response = client.send_request(request).await.unwrap();
        assert_eq!(response.headers()["content-length"], "4");
        assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
        assert_eq!(ask(&mut client, "/a").await.unwrap(), "/a");
    });
}

#[test]
fn crumbs_become_one_cookie_and_other_headers_stay() {
    let mut map = HeaderMap::new();
    for (name, value) in
        [("cookie", "a=1"), ("x", " 1 "), ("cookie", "b=2"), ("x", ""), ("x", "\t3")]
    {
        map.append(name, HeaderValue::from_static(value));
    }
    let (mut bytes, mut lines) = (b"left over".to_vec(), Vec::new());
    headers_to_lines(&map, &mut bytes, &mut lines);
    let headers = Headers::new(&bytes, &lines);
    let expected: [(&[u8], &[u8]); 4] =
        [(b"cookie", b"a=1; b=2"), (b"x", b"1"), (b"x", b""), (b"x", b"3")];
    assert_eq!(headers.iter().collect::<Vec<_>>(), expected);
    let mut read = HeaderMap::new();
    append_lines_to_map(&bytes, &mut read);
    assert_eq!(read, headers.to_map());
}

/// The kind and the flags of the next frame.
async fn frame(client: &mut DuplexStream) -> (u8, u8) {
    let mut head = [0; 9];
    client.read_exact(&mut head).await.unwrap();
    let mut rest = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
    client.read_exact(&mut rest).await.unwrap();
    (head[3], head[4])
}

#[test]
fn requests_that_come_together_are_answered_together() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut client, inner, registration) = rig.registration(64 * 1024);
        let activity: Rc<Activity> = Rc::default();
        let pipe = ActivityStream { inner, activity: activity.clone() };
        let counted = Transport::CountedPipe(pipe);
        tokio::task::spawn_local(serve_http(counted, PEER, rig.handler.clone(), registration));
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        // Reads up to the acknowledgement of our settings.
        while frame(&mut client).await != (4, 1) {}
        let before = activity.writes.get();
        let mut requests = Vec::new();
        for stream in (1_u32..20).step_by(2) {
            // GET, http, a path of 300 bytes, and x as the authority. The answer repeats the path.
            let mut head = vec![0x82, 0x86, 0x04, 0x7f, 0xad, 0x01];
            head.push(b'/');
            head.extend([b'p'; 299]);
            head.extend([0x41, 1, b'x']);
            requests.extend([0, (head.len() >> 8) as u8, head.len() as u8, 1, 5]);
            requests.extend(stream.to_be_bytes());
            requests.extend(head);
        }
        client.write_all(&requests).await.unwrap();
        let mut ended = 0;
        while ended < 10 {
            let (kind, flags) = frame(&mut client).await;
            ended += usize::from(kind == 0 && flags & 1 == 1);
        }
        assert_eq!(rig.handler.handled.get(), 10);
        assert_eq!(activity.writes.get() - before, 1);
    });
}
