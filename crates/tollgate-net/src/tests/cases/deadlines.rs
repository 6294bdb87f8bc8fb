//! Slow and silent clients are closed at a deadline; other clients are not affected.

use super::*;
use crate::RequestBody;

#[test]
fn silence_ends_at_the_deadline_of_a_head() {
    run(async {
        let rig = Rig::new(Limits::default());
        assert_eq!(rest(&mut rig.connect()).await, 0);
        rig.passed(seconds(10));
        assert_eq!(rig.stats().expired(), 1);
    });
}

#[test]
fn a_slow_head_is_told_so_at_its_deadline() {
    for sent in ["GET / HT", "P", "POST /body HTTP/1.1\r\nhost: x\r\n"] {
        run(async {
            let rig = Rig::new(Limits::default());
            let (mut read, mut write) = tokio::io::split(rig.connect());
            tokio::task::spawn_local(async move {
                for byte in sent.bytes() {
                    write.write_all(&[byte]).await.ok();
                    tokio::time::sleep(Duration::from_millis(400)).await;
                }
                std::future::pending::<()>().await;
            });
            let mut text = String::new();
            read.read_to_string(&mut text).await.unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{head}");
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{text}");
            assert!(head.ends_with("connection: close"), "{text}");
            serde_json::from_str::<serde_json::Value>(body).unwrap();
            rig.passed(seconds(10));
        });
    }
}

#[test]
fn more_bytes_of_a_head_buy_no_more_time() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(&get("/a")).await.unwrap();
        answer(&mut client).await;
        tokio::time::sleep(seconds(30)).await;
        client.write_all(b"GET /b HTTP/1.1\r\n").await.unwrap();
        for n in 0..9 {
            tokio::time::sleep(seconds(1)).await;
            client.write_all(format!("field-{n}: x\r\n").as_bytes()).await.unwrap();
        }
        assert!(answer(&mut client).await.0.starts_with("http/1.1 408"));
        rig.passed(seconds(40));
    });
}

#[test]
fn an_idle_connection_is_kept_for_a_minute() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        for _ in 0..3 {
            client.write_all(&get("/a")).await.unwrap();
            answer(&mut client).await;
            tokio::time::sleep(seconds(59)).await;
        }
        assert_eq!(rest(&mut client).await, 0);
        rig.passed(seconds(2 * 59 + 60));
    });
}

#[test]
fn a_body_has_a_deadline() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client
            .write_all(b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n")
            .await
            .unwrap();
        for _ in 0..9 {
            client.write_all(b"x").await.unwrap();
            tokio::time::sleep(seconds(1)).await;
        }
        assert_eq!(answer(&mut client).await.1, "TooSlow");
        rig.passed(seconds(10));
    });
}

#[test]
fn a_body_has_a_largest_size_however_it_comes() {
    let exact = format!("content-length: 1000\r\n\r\n{}", "x".repeat(1000));
    let piece = format!("1f4\r\n{}\r\n", "x".repeat(500));
    let chunks =
        |count| format!("transfer-encoding: chunked\r\n\r\n{}0\r\n\r\n", piece.repeat(count));
    let cases = [
        (exact, "1000 bytes"),
        ("content-length: 1001\r\n\r\n".to_owned(), "TooLarge"),
        ("content-length: 999999999999999999\r\n\r\n".to_owned(), "TooLarge"),
        (chunks(2), "1000 bytes"),
        (chunks(3), "TooLarge"),
        ("content-length: 0\r\n\r\n".to_owned(), "0 bytes"),
        ("\r\n".to_owned(), "0 bytes"),
    ];
    for (rest, expected) in cases {
        run(async {
            let rig = Rig::new(Limits::default());
            let mut client = rig.connect();
            let request = format!("POST /body HTTP/1.1\r\nhost: x\r\n{rest}");
            client.write_all(request.as_bytes()).await.unwrap();
            assert_eq!(answer(&mut client).await.1, expected, "{rest:.60}");
        });
    }
}

#[test]
fn an_answer_that_nobody_reads_ends_like_an_idle_connection() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_with(1024);
        client.write_all(&get("/large")).await.unwrap();
        tokio::time::sleep(seconds(59)).await;
        assert_eq!(rig.stats().expired(), 0);
        tokio::time::sleep(seconds(1) + LATE).await;
        assert_eq!(rig.stats().expired(), 1);
        assert_eq!(rest(&mut client).await, 1024, "only the bytes in the pipe");
    });
}

#[test]
fn a_handler_is_not_hurried() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(&get("/sleep")).await.unwrap();
        assert_eq!(answer(&mut client).await.1, "slept");
        rig.passed(seconds(300));
    });
}

#[test]
fn what_a_refused_client_still_sends_is_read_for_a_while() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_with(1024);
        client
            .write_all(b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 9000\r\n\r\n")
            .await
            .unwrap();
        client.write_all(&[b'x'; 8000]).await.expect("the connection stays open");
        assert_eq!(answer(&mut client).await.1, "TooLarge");
        rest(&mut client).await;
        client.write_all(&[b'x'; 1000]).await.expect("still not");
        tokio::time::sleep(seconds(1) + LATE).await;
        client.write_all(b"x").await.expect_err("now it did");
    });
}

/// Reads the body of a request, then takes three seconds to answer.
struct SlowHandler;

impl Handler for SlowHandler {
    const CANCEL_ON_CLIENT_CLOSE: bool = true;

    async fn handle(
        &self,
        request: Request<'_>,
        _: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        if let RequestBody::Stream(upload) = request.body {
            assert!(upload.collect(1 << 20, seconds(60)).await.is_ok());
        }
        tokio::time::sleep(seconds(3)).await;
        answer.body.extend_from_slice(b"slow");
    }
}

/// A head that began during another request has the deadline of a head after it, and gets 408.
#[test]
fn an_early_head_is_no_idle_connection() {
    let first = [
        "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: y\r\n\r\n",
    ];
    for (first, together) in first.into_iter().flat_map(|first| [(first, true), (first, false)]) {
        run(async {
            let rig = Rig::new(Limits::default());
            let mut client = rig.connect_to(&Rc::new(SlowHandler));
            let mut next = "GET /b HTTP/1.1\r\nho";
            if together {
                client.write_all(format!("{first}{next}").as_bytes()).await.unwrap();
            } else {
                client.write_all(first.as_bytes()).await.unwrap();
                tokio::time::sleep(seconds(1)).await;
                client.write_all(next.as_bytes()).await.unwrap();
                next = "";
            }
            assert_eq!(answer(&mut client).await.1, "slow", "{first}{next}");
            assert!(answer(&mut client).await.0.starts_with("http/1.1 408"), "{first}{next}");
            rig.passed(seconds(3 + 10));
        });
    }
}

/// An empty line after a body starts no head: some clients send one after a body.
#[test]
fn an_empty_line_is_no_head() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::new(SlowHandler));
        let post = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc\r\n";
        client.write_all(post).await.unwrap();
        answer(&mut client).await;
        assert_eq!(rest(&mut client).await, 0);
        rig.passed(seconds(3 + 60));
    });
}

/// A head that began early may be completed later.
#[test]
fn an_early_head_may_end_late() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::new(SlowHandler));
        client.write_all(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HT").await.unwrap();
        answer(&mut client).await;
        client.write_all(b"TP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert_eq!(answer(&mut client).await.1, "slow");
        // The connection is idle now.
        assert_eq!(rest(&mut client).await, 0);
        rig.passed(seconds(3 + 3 + 60));
    });
}
