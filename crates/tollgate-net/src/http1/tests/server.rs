//! Connections from the first request to the end.

use super::{EchoHandler, LARGE, ask, get, post, put, read_all, read_now, send, settle};
use crate::{
    Limits,
    connection::CloseRequest,
    http1::push_header,
    tests::rig::{Rig, answer, rest, run, seconds},
};
use proptest::prelude::*;
use std::{rc::Rc, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Echo = EchoHandler<false>;
type CancellingEcho = EchoHandler<true>;

#[test]
fn pipelined_requests_keep_their_order() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::<Echo>::default());
        let all = [get("/1"), post("/2", "x"), put("/3", "0\r\n\r\n"), get("/large"), get("/5")];
        send(&mut client, &all.concat()).await;
        for expected in ["GET /1 ", "POST /2 x", "PUT /3 "] {
            assert_eq!(answer(&mut client).await.1, expected);
        }
        assert_eq!(answer(&mut client).await.1.len(), LARGE);
        assert_eq!(answer(&mut client).await.1, "GET /5 ");
    });
}

/// A ready answer does not wait for a later, slow request.
#[test]
fn a_slow_request_does_not_hold_earlier_answers_back() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<Echo>::default();
        let mut client = rig.connect_to(&handler);
        send(&mut client, &[get("/1"), get("/2"), get("/wait"), get("/4")].concat()).await;
        assert_eq!(answer(&mut client).await.1, "GET /1 ");
        assert_eq!(answer(&mut client).await.1, "GET /2 ");
        handler.go.notify_one();
        assert_eq!(answer(&mut client).await.1, "GET /wait ");
        assert_eq!(answer(&mut client).await.1, "GET /4 ");
    });
}

#[test]
fn early_requests_wait_for_their_turn() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<CancellingEcho>::default();
        let mut client = rig.connect_and_see(&handler, 1000).0;
        send(&mut client, &get("/large")).await;
        settle().await;
        send(&mut client, &get("/next")).await;
        settle().await;
        assert_eq!(answer(&mut client).await.1.len(), LARGE);
        assert_eq!(answer(&mut client).await.1, "GET /next ");

        send(&mut client, &get("/wait")).await;
        settle().await;
        send(&mut client, &get("/next")).await;
        settle().await;
        handler.go.notify_one();
        assert_eq!(answer(&mut client).await.1, "GET /wait ");
        assert_eq!(answer(&mut client).await.1, "GET /next ");
        assert_eq!(ask(&mut client, &get("/last")).await, "GET /last ");
        assert_eq!(handler.requests_seen().len(), 5);
    });
}

#[test]
fn a_client_that_ends_its_side_gives_its_request_up_where_the_handler_says_so() {
    run(async {
        let rig = Rig::new(Limits::default());
        for request in [get("/wait"), post("/wait", "x"), put("/wait", "1\r\nx\r\n0\r\n\r\n")] {
            let handler = Rc::<CancellingEcho>::default();
            let mut client = rig.connect_to(&handler);
            send(&mut client, &request).await;
            settle().await;
            client.shutdown().await.unwrap();
            assert_eq!(rest(&mut client).await, 0);
            assert_eq!(handler.given_up.get(), 1, "{request}");

            // Also after blank lines, or after part of the next request.
            for early in ["\r\n", "G", "GET /next HTTP/1.1\r\nhost: x\r\n\r\n"] {
                let handler = Rc::<CancellingEcho>::default();
                let mut client = rig.connect_to(&handler);
                send(&mut client, &request).await;
                settle().await;
                send(&mut client, early).await;
                settle().await;
                client.shutdown().await.unwrap();
                assert_eq!(rest(&mut client).await, 0);
                assert_eq!(handler.given_up.get(), 1, "{request} {early}");
            }

            let handler = Rc::<Echo>::default();
            let mut client = rig.connect_to(&handler);
            send(&mut client, &request).await;
            client.shutdown().await.unwrap();
            tokio::time::sleep(seconds(100)).await;
            handler.go.notify_one();
            let (_, body) = answer(&mut client).await;
            assert!(request.starts_with(body.split_once(' ').unwrap().0), "{body}");
            assert_eq!(rest(&mut client).await, 0);
            assert_eq!(handler.given_up.get(), 0, "{request}");
        }
    });
}

#[test]
fn a_client_that_leaves_while_its_answer_streams_is_noticed() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::<CancellingEcho>::default());
        send(&mut client, &get("/stuck")).await;
        assert!(read_now(&mut client).await.ends_with("\r\n\r\n3\r\none\r\n"));
        drop(client);
        rig.emptied().await;
        rig.passed(Duration::ZERO);
    });
}

#[test]
fn the_deadlines_hold_after_an_answer() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::<Echo>::default());
        send(&mut client, &(post("/a", "x") + "POST /b")).await;
        answer(&mut client).await;
        assert!(read_all(&mut client).await.starts_with("HTTP/1.1 408 "));
        rig.passed(seconds(10));
        assert_eq!(rig.stats().expired(), 1);
    });
    // A connection is idle after a body that was skipped or streamed.
    for request in [post("/early", "x"), post("/early-chunks", "x"), put("/a", "0\r\n\r\n")] {
        run(async {
            let rig = Rig::new(Limits::default());
            let mut client = rig.connect_to(&Rc::<CancellingEcho>::default());
            let (first, last) = request.split_at(request.len() - 1);
            send(&mut client, first).await;
            settle().await;
            send(&mut client, last).await;
            let said = read_all(&mut client).await;
            assert_eq!(said.matches("HTTP/1.1").count(), 1, "{said}");
            rig.passed(seconds(60));
        });
    }
}

#[test]
fn an_answer_that_nobody_takes_ends_after_the_time_of_an_idle_connection() {
    for path in ["/large", "/endless"] {
        run(async {
            let rig = Rig::new(Limits::default());
            let handler = Rc::<CancellingEcho>::default();
            let mut client = rig.connect_and_see(&handler, 1000).0;
            send(&mut client, &get(path)).await;
            // Reading a part restarts the deadline.
            tokio::time::sleep(seconds(30)).await;
            let mut some = vec![0; 1500];
            client.read_exact(&mut some).await.unwrap();
            rig.emptied().await;
            let waits = if path == "/large" { 60 } else { 90 };
            rig.passed(seconds(waits));
            assert_eq!(rig.stats().expired(), 1);
        });
    }
}

#[test]
fn version_1_0_ends_with_its_answer_unless_asked_otherwise() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<Echo>::default();
        let old = "GET /a HTTP/1.0\r\nhost: x\r\n\r\n";
        let mut client = rig.connect_to(&handler);
        send(&mut client, old).await;
        assert_eq!(
            read_all(&mut client).await,
            "HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nGET /a "
        );
        let kept = old.replace("\r\n\r\n", "\r\nconnection: Keep-Alive\r\n\r\n");
        let mut client = rig.connect_to(&handler);
        for _ in 0..3 {
            send(&mut client, &kept).await;
            let (head, body) = answer(&mut client).await;
            assert!(head.contains("\r\nconnection: keep-alive\r\n"), "{head}");
            assert_eq!(body, "GET /a ");
        }
        // HTTP/1.0 has no chunks, so the end of the connection ends the body.
        send(&mut client, &kept.replace("/a", "/trailers")).await;
        let expected = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nonethree";
        assert_eq!(read_all(&mut client).await, expected);
        let mut client = rig.connect_to(&handler);
        send(&mut client, &kept.replace("/a", "/sized")).await;
        let (head, body) = answer(&mut client).await;
        assert!(head.contains("\r\nconnection: keep-alive\r\n"), "{head}");
        assert_eq!(body, "GET /sized ");
    });
}

#[test]
fn either_side_may_ask_for_the_end() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<Echo>::default();
        for request in [
            get("/a").replace("host", "Connection: x, Close\r\nhost"),
            get("/a").replace("host", "connection: keep-alive\r\nconnection: close\r\nhost"),
            get("/close"),
        ] {
            let mut client = rig.connect_to(&handler);
            send(&mut client, &(request + &get("/never"))).await;
            let said = read_all(&mut client).await;
            assert!(said.contains("\r\nconnection: close\r\n"), "{said}");
            assert_eq!(handler.requests_seen().len(), 1, "{said}");
        }
    });
}

#[test]
fn answers_to_head_and_without_content_have_no_body() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::<Echo>::default());
        let head = |path: &str| get(path).replacen("GET", "HEAD", 1);
        for (request, expected) in [
            (head("/a"), "200 OK\r\ncontent-length: 8\r\n"),
            (head("/sized"), "200 OK\r\ncontent-length: 12\r\n"),
            (head("/chunks"), "200 OK\r\n"),
            (get("/status-204"), "204 No Content\r\n"),
            (get("/status-304"), "304 Not Modified\r\n"),
        ] {
            send(&mut client, &request).await;
            let expected = format!("HTTP/1.1 {expected}\r\n");
            assert_eq!(read_now(&mut client).await, expected, "{request}");
        }
    });
}

#[test]
fn answers_stream_with_a_length_or_in_chunks() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::<Echo>::default());
        assert_eq!(ask(&mut client, &post("/sized", "x")).await, "POST /sized x");
        let chunks =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n5\r\nthree\r\n0\r\n";
        send(&mut client, &get("/chunks")).await;
        assert_eq!(read_now(&mut client).await, format!("{chunks}\r\n"));
        send(&mut client, &put("/trailers", "1\r\nx\r\n0\r\nA: 1\r\na: 2\r\n\r\n")).await;
        let trailer = r#"echo: PUT /trailers x{"a": "1", "a": "2"}"#;
        assert_eq!(read_now(&mut client).await, format!("{chunks}{trailer}\r\n\r\n"));
        assert_eq!(ask(&mut client, &get("/a")).await, "GET /a ");
    });
}

/// A truncated answer must not look complete.
#[test]
fn an_answer_that_breaks_off_ends_its_connection() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::<Echo>::default());
        send(&mut client, &(get("/broken") + &get("/never"))).await;
        let said = read_all(&mut client).await;
        assert!(said.ends_with("\r\n\r\n3\r\none\r\n"), "{said}");
    });
}

#[test]
fn interim_answers_come_before_the_final_one() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<Echo>::default();
        let mut client = rig.connect_to(&handler);
        send(&mut client, &(get("/1") + &get("/interim"))).await;
        let said = read_now(&mut client).await;
        let (first, last) = said.split_once("HTTP/1.1 103 Early Hints\r\n\r\n").unwrap();
        assert!(first.ends_with("GET /1 ") && last.ends_with("GET /interim "), "{said}");
        send(&mut client, &(get("/1") + &get("/interim-wait"))).await;
        let said = read_now(&mut client).await;
        assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
        assert!(said.ends_with("GET /1 HTTP/1.1 103 Early Hints\r\n\r\n"), "{said}");
        handler.go.notify_one();
        assert_eq!(answer(&mut client).await.1, "GET /interim-wait ");
    });
}

#[test]
fn an_upgrade_joins_a_tunnel_with_what_came_early() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<CancellingEcho>::default();
        let request =
            get("/upgrade").replace("host", "connection: upgrade\r\nupgrade: echo\r\nhost");
        for is_together in [true, false] {
            let mut client = rig.connect_to(&handler);
            send(&mut client, &get("/wait")).await;
            settle().await;
            match is_together {
                true => send(&mut client, &format!("{request}early\n")).await,
                false => {
                    send(&mut client, &request).await;
                    send(&mut client, "early\n").await;
                }
            }
            handler.go.notify_one();
            answer(&mut client).await;
            settle().await;
            let expected = "HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\n\r\nfirst of all ";
            assert_eq!(read_now(&mut client).await, expected);
            let mut upstream = handler.tunnel.take().unwrap();
            send(&mut client, "late").await;
            assert_eq!(read_now(&mut upstream).await, "early\nlate");
            send(&mut upstream, "back").await;
            assert_eq!(read_now(&mut client).await, "back");
            // Bytes that one client sent early do not reach the next client.
            assert_eq!(ask(&mut rig.connect_to(&handler), &get("/a")).await, "GET /a ");
            drop(client);
            assert_eq!(rest(&mut upstream).await, 0);
        }
    });
}

#[test]
fn a_panic_ends_its_connection_and_is_counted() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<Echo>::default();
        let mut client = rig.connect_to(&handler);
        send(&mut client, &get("/panic")).await;
        assert_eq!(rest(&mut client).await, 0);
        assert_eq!(rig.stats().panics(), 1);
        assert_eq!(ask(&mut rig.connect_to(&handler), &get("/a")).await, "GET /a ");
    });
}

#[test]
fn a_refusal_comes_after_all_earlier_answers() {
    let many: String = (0..101).map(|n| format!("x-{n}: y\r\n")).collect();
    for (bad, status) in [
        ("GET / HTTP/1.1\nhost: x\r\n\r\n".to_owned(), "400 Bad Request"),
        ("nonsense\r\n\r\n".to_owned(), "400 Bad Request"),
        (get("/#a"), "400 Bad Request"),
        (get("/").replace("host", "host: y\r\nhost"), "400 Bad Request"),
        (post("/", "x").replace("host", "transfer-encoding: chunked\r\nhost"), "400 Bad Request"),
        (get("/").replace("host", &format!("{many}host")), "431 Request Header Fields Too Large"),
        (get(&"/a".repeat(10_000)), "431 Request Header Fields Too Large"),
    ] {
        run(async {
            let rig = Rig::new(Limits::default());
            let handler = Rc::<Echo>::default();
            let mut client = rig.connect_to(&handler);
            send(&mut client, &[get("/1"), post("/2", "x"), bad.clone()].concat()).await;
            assert_eq!(answer(&mut client).await.1, "GET /1 ");
            assert_eq!(answer(&mut client).await.1, "POST /2 x");
            let (head, body) = answer(&mut client).await;
            assert!(head.starts_with(&format!("http/1.1 {status}\r\n").to_lowercase()), "{head}");
            assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
            let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(problem["status"], status[..3].parse::<u16>().unwrap());
            assert_eq!(rest(&mut client).await, 0);
            assert_eq!(handler.requests_seen().len(), 2);
        });
    }
}

#[test]
fn a_connection_that_is_to_end_says_so() {
    run(async {
        let rig = Rig::new(Limits::default());
        for path in ["/b", "/sized", "/wait"] {
            let handler = Rc::<Echo>::default();
            let (mut client, state) = rig.connect_and_see(&handler, 1000);
            ask(&mut client, &get("/a")).await;
            state.request_close(CloseRequest::Graceful);
            handler.go.notify_one();
            send(&mut client, &(get(path) + &get("/never"))).await;
            let (head, _) = answer(&mut client).await;
            assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
            assert_eq!(rest(&mut client).await, 0);
            assert_eq!(handler.requests_seen().len(), 2);
        }
    });
}

#[test]
fn every_byte_of_a_name_is_lowered_as_ascii_is() {
    for byte in 0..=u8::MAX {
        for place in 0..9 {
            let mut name = *b"Zz[@`{AaM";
            name[place] = byte;
            let mut out = Vec::new();
            push_header(&name, b"V", &mut out);
            assert_eq!(out, [&name.to_ascii_lowercase()[..], b": V\r\n"].concat());
        }
    }
}

proptest! {
    #[test]
    fn a_name_is_lowered_behind_whatever_is_there(before: Vec<u8>, name: Vec<u8>, value: Vec<u8>) {
        let mut out = before.clone();
        push_header(&name, &value, &mut out);
        let expected = [&before, &name.to_ascii_lowercase()[..], b": ", &value, b"\r\n"].concat();
        prop_assert_eq!(out, expected);
    }
}
