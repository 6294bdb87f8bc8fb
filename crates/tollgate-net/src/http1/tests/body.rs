//! Bodies that are awaited, unread, slow or malformed.

use super::{EchoHandler, ask, get, post, put, read_all, read_now, send, settle};
use crate::{
    Limits,
    tests::rig::{Rig, answer, rest, run, seconds},
};
use std::rc::Rc;
use tokio::io::AsyncWriteExt;

type BodyEcho = EchoHandler<false>;

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

fn expecting(request: &str) -> String {
    request.replacen("host", "Expect: 100-Continue\r\nhost", 1)
}

#[test]
fn a_body_is_asked_for_when_it_is_first_wanted() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<BodyEcho>::default();
        let mut client = rig.connect_to(&handler);
        let all = [get("/1"), expecting(&post("/2", "abc")), expecting(&put("/3", "0\r\n\r\n"))];
        let split = |request: &str| request.find("\r\n\r\n").unwrap() + 4;
        // `100 Continue` comes after the earlier answers.
        send(&mut client, &(all[0].clone() + &all[1][..split(&all[1])])).await;
        let said = read_now(&mut client).await;
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        assert!(said.ends_with(&format!("GET /1 {CONTINUE}")), "{said}");
        assert_eq!(ask(&mut client, "abc").await, "POST /2 abc");
        send(&mut client, &all[2][..split(&all[2])]).await;
        assert_eq!(read_now(&mut client).await, CONTINUE);
        assert_eq!(ask(&mut client, "0\r\n\r\n").await, "PUT /3 ");
        assert_eq!(ask(&mut client, &get("/4")).await, "GET /4 ");
    });
}

#[test]
fn a_body_that_comes_anyway_is_not_asked_for() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::<BodyEcho>::default());
        for (request, expected) in [
            (expecting(&post("/a", "abc")), "POST /a abc"),
            (expecting(&put("/a", "1\r\nx\r\n0\r\n\r\n")), "PUT /a x"),
        ] {
            for missing in [0, 1, 2] {
                let (first, last) = request.split_at(request.len() - missing);
                send(&mut client, first).await;
                settle().await;
                assert_eq!(ask(&mut client, last).await, expected);
            }
        }
        // No `100 Continue` is due: the request has no body, or the client is HTTP/1.0.
        let unlike = expecting(&post("/a", "abc")).replace("100-C", "200-c");
        assert_eq!(ask(&mut client, &expecting(&get("/a"))).await, "GET /a ");
        send(&mut client, unlike.strip_suffix("abc").unwrap()).await;
        assert_eq!(read_now(&mut client).await, "");
        assert_eq!(ask(&mut client, "abc").await, "POST /a abc");
        let old = expecting(&post("/a", "abc")).replace("HTTP/1.1", "HTTP/1.0");
        send(&mut client, old.strip_suffix("abc").unwrap()).await;
        assert_eq!(read_now(&mut client).await, "");
        assert_eq!(ask(&mut client, "abc").await, "POST /a abc");
    });
}

/// After a final answer, an awaited body may or may not follow, so the connection closes.
#[test]
fn an_awaited_body_that_nobody_wants_ends_its_connection() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<BodyEcho>::default();
        let mut client = rig.connect_to(&handler);
        send(&mut client, expecting(&post("/early", "x")).strip_suffix('x').unwrap()).await;
        let (head, body) = answer(&mut client).await;
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
        assert_eq!(body, "POST /early ");
        client.write_all(get("/smuggled").as_bytes()).await.ok();
        assert_eq!(rest(&mut client).await, 0);
        assert_eq!(handler.requests_seen().len(), 1);
    });
}

/// The answer does not wait for an unread body; the next request does.
#[test]
fn a_small_body_that_nobody_wants_is_skipped() {
    let body = get("/smuggled");
    for path in ["/early", "/early-chunks", "/early/status-204", "/early/status-304"] {
        for sent in 0..=body.len() {
            run(async {
                let rig = Rig::new(Limits::default());
                let handler = Rc::<BodyEcho>::default();
                let mut client = rig.connect_to(&handler);
                let request = post(path, &body);
                let (first, last) = request.split_at(request.len() - body.len() + sent);
                send(&mut client, first).await;
                settle().await;
                assert!(read_now(&mut client).await.starts_with("HTTP/1.1 "), "{sent}");
                send(&mut client, last).await;
                assert_eq!(ask(&mut client, &get("/next")).await, "GET /next ", "{sent}");
                assert_eq!(handler.requests_seen().len(), 2, "{path} {sent}");
            });
        }
    }
}

#[test]
fn a_body_that_nobody_wants_ends_its_connection_where_it_is_large_or_slow() {
    for (request, says_so) in [
        (post("/early", &"x".repeat(65_537)), true),
        (put("/early", "1\r\nx\r\n0\r\n\r\n"), true),
        (post("/early", "x"), false),
    ] {
        run(async {
            let rig = Rig::new(Limits::default());
            let handler = Rc::<BodyEcho>::default();
            let mut client = rig.connect_to(&handler);
            let head = request.find("\r\n\r\n").unwrap() + 4;
            send(&mut client, &request[..head]).await;
            let (head, _) = answer(&mut client).await;
            assert_eq!(head.contains("\r\nconnection: close\r\n"), says_so, "{head}");
            rig.passed(seconds(0));
            assert_eq!(rest(&mut client).await, 0);
            client.write_all(get("/smuggled").as_bytes()).await.ok();
            settle().await;
            assert_eq!(handler.requests_seen().len(), 1);
        });
    }
}

/// After a malformed body, the start of the next request is unknown.
#[test]
fn a_broken_body_ends_its_connection() {
    for chunks in [
        "\r\n\r\n",
        "x\r\n",
        "1\nx\r\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "1 \r\na\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "0\r\nx: y\n\r\n",
        "0\r\n x: y\r\n\r\n",
        "0\r\nx y\r\n\r\n",
        "0\r\nx : y\r\n\r\n",
        "1234567890123456\r\n",
    ] {
        run(async {
            let rig = Rig::new(Limits::default());
            let handler = Rc::<BodyEcho>::default();
            let mut client = rig.connect_to(&handler);
            // Sent after the head: a malformed body in the same piece would be refused with its
            // head.
            let request = put("/a", chunks);
            let (head, body) = request.split_at(request.len() - chunks.len());
            send(&mut client, head).await;
            settle().await;
            send(&mut client, body).await;
            settle().await;
            client.write_all(get("/smuggled").as_bytes()).await.ok();
            let said = read_all(&mut client).await;
            assert_eq!(handler.requests_seen(), ["PUT /a Broken"], "{chunks:?}");
            assert!(said.contains("\r\nconnection: close\r\n"), "{said}");
            assert!(said.ends_with("PUT /a Broken"), "{said}");
        });
    }
}

/// If the malformed start of a body arrives with the head, neither handler nor upstream sees the
/// request.
#[test]
fn a_body_that_begins_badly_is_refused_with_its_head() {
    for chunks in ["x\r\n", "1\nx\r\n0\r\n\r\n", "1\r\nab\r\n0\r\n\r\n", "1 \r\na\r\n0\r\n\r\n"] {
        run(async {
            let rig = Rig::new(Limits::default());
            let handler = Rc::<BodyEcho>::default();
            let mut client = rig.connect_to(&handler);
            send(&mut client, &put("/a", chunks)).await;
            let said = read_all(&mut client).await;
            assert!(handler.requests_seen().is_empty(), "{chunks:?}");
            assert!(
                said.starts_with("HTTP/1.1 400 ") && said.contains("connection: close"),
                "{said}"
            );
        });
    }
}

#[test]
fn a_body_that_breaks_off_is_told_from_one_that_ends() {
    for (request, expected) in [
        (post("/a", "abc"), "POST /a PeerClosed"),
        (put("/a", "3\r\nabc\r\n0\r\nx: y\r\n\r\n"), "PUT /a PeerClosed"),
    ] {
        let head = request.find("\r\n\r\n").unwrap() + 4;
        for cut in head..request.len() {
            run(async {
                let rig = Rig::new(Limits::default());
                let handler = Rc::<BodyEcho>::default();
                let mut client = rig.connect_to(&handler);
                send(&mut client, &request[..cut]).await;
                settle().await;
                client.shutdown().await.unwrap();
                settle().await;
                assert_eq!(handler.requests_seen(), [expected], "{cut}");
                assert!(read_all(&mut client).await.ends_with(expected));
            });
        }
    }
}

#[test]
fn a_body_may_take_long_but_not_pause_for_long() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<BodyEcho>::default();
        let mut client = rig.connect_to(&handler);
        let request = post("/a", "abcdef");
        let (first, rest_of_it) = request.split_at(request.len() - 6);
        send(&mut client, first).await;
        for byte in rest_of_it.bytes().take(3) {
            tokio::time::sleep(seconds(9)).await;
            client.write_all(&[byte]).await.unwrap();
        }
        assert_eq!(answer(&mut client).await.1, "POST /a TooSlow");
        rig.passed(seconds(27 + 10));
    });
}
