//! Requests split into pieces in every way give the same answers.

use super::{EchoHandler, ask, get, post, put, read_all, send, settle};
use crate::{
    Handler, Limits,
    tests::rig::{Rig, answer, run},
};
use proptest::prelude::*;
use std::rc::Rc;

/// A body that looks like a request.
const BODY: &str = "GET /smuggled HTTP/1.1\r\nhost: y\r\n\r\n";
/// The last request of a connection.
const LAST: &str = "GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/// The answers to these pieces, each sent after the server has read the previous ones.
async fn exchange(rig: &Rig, handler: &Rc<impl Handler>, pieces: &[&str]) -> String {
    let mut client = rig.connect_to(handler);
    for piece in pieces {
        send(&mut client, piece).await;
        settle().await;
    }
    read_all(&mut client).await
}

fn requests() -> (String, Vec<String>) {
    let body = format!("5;x=\"y\"\r\nhello\r\n{:X}\r\n{BODY}\r\n00\r\n", BODY.len());
    let sent = [
        post("/1", BODY),
        get("/2"),
        format!("\r\n{}", post("/3", "")),
        put("/4", &format!("{body}A: 1\r\nb: 2\r\n\r\n")),
        put("/5", "0\r\n\r\n"),
        post("/6", "x"),
        LAST.into(),
    ];
    let expected = [
        format!("POST /1 {BODY}"),
        "GET /2 ".into(),
        "POST /3 ".into(),
        format!("PUT /4 hello{BODY}{{\"a\": \"1\", \"b\": \"2\"}}"),
        "PUT /5 ".into(),
        "POST /6 x".into(),
        "GET /last ".into(),
    ];
    (sent.concat(), expected.into())
}

async fn every_cut_of<const ENDS_WITH_CLIENT: bool>() {
    let rig = Rig::new(Limits::default());
    let handler = Rc::new(EchoHandler::<ENDS_WITH_CLIENT>::default());
    let (sent, expected) = requests();
    let whole = exchange(&rig, &handler, &[&sent]).await;
    assert_eq!(handler.requests_seen(), expected);
    assert_eq!(whole.matches("HTTP/1.1 200 OK\r\n").count(), expected.len(), "{whole}");
    for cut in 1..sent.len() {
        let got = exchange(&rig, &handler, &[&sent[..cut], &sent[cut..]]).await;
        assert_eq!(handler.requests_seen(), expected, "at {cut}");
        assert_eq!(got, whole, "at {cut}");
    }
}

#[test]
fn every_cut_gives_the_same_answers() {
    run(every_cut_of::<false>());
}

#[test]
fn every_cut_gives_the_same_answers_while_the_client_is_watched() {
    run(every_cut_of::<true>());
}

#[test]
fn pieces_of_every_size_give_the_same_answers() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<EchoHandler>::default();
        let (sent, expected) = requests();
        let whole = exchange(&rig, &handler, &[&sent]).await;
        handler.requests_seen();
        for size in 1..100 {
            let pieces: Vec<_> = sent.as_bytes().chunks(size).collect();
            let pieces: Vec<_> =
                pieces.iter().map(|piece| str::from_utf8(piece).unwrap()).collect();
            assert_eq!(exchange(&rig, &handler, &pieces).await, whole, "by {size}");
            assert_eq!(handler.requests_seen(), expected, "by {size}");
        }
    });
}

#[test]
fn bodies_of_every_method_and_size_arrive() {
    run(async {
        let rig = Rig::new(Limits::default());
        let handler = Rc::<EchoHandler>::default();
        let mut client = rig.connect_to(&handler);
        for method in ["POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS", "PROPFIND"] {
            let request = post("/a", BODY).replacen("POST", method, 1);
            assert_eq!(ask(&mut client, &request).await, format!("{method} /a {BODY}"));
        }
        // Sizes around the limits of one read.
        for size in [0, 1, 8_000, 8_192, 16_384, 16_385, 100_000] {
            let body = "x".repeat(size);
            assert_eq!(ask(&mut client, &post("/a", &body)).await, format!("POST /a {body}"));
            let chunks = format!("{size:x}\r\n{body}\r\n0\r\n\r\n");
            let chunks = chunks.replace("0\r\n\r\n0", "0");
            assert_eq!(ask(&mut client, &put("/a", &chunks)).await, format!("PUT /a {body}"));
        }
    });
}

/// A request of a kind, and its expected answer.
fn request(kind: u8, number: usize) -> (String, String) {
    let path = format!("/{number}");
    match kind {
        0 => (get(&path), format!("GET {path} ")),
        1 => (post(&path, BODY), format!("POST {path} {BODY}")),
        2 => {
            let body = "x".repeat(9_000);
            (post(&path, &body), format!("POST {path} {body}"))
        }
        3 => (put(&path, "2;a\r\n\r\n\r\n0\r\n\r\n"), format!("PUT {path} \r\n")),
        _ => {
            let path = format!("/early/{number}");
            (post(&path, BODY), format!("POST {path} "))
        }
    }
}

async fn any_pieces<const ENDS_WITH_CLIENT: bool>(kinds: &[u8], cuts: &[(usize, bool)]) {
    let (sent, expected): (Vec<_>, Vec<_>) =
        kinds.iter().enumerate().map(|(n, kind)| request(*kind, n)).unzip();
    let sent = sent.concat();
    let rig = Rig::new(Limits::default());
    let handler = Rc::new(EchoHandler::<ENDS_WITH_CLIENT>::default());
    let mut client = rig.connect_to(&handler);
    let mut at = 0;
    for (cut, has_pause) in cuts {
        let end = (cut % sent.len()).max(at);
        send(&mut client, &sent[at..end]).await;
        at = end;
        if *has_pause {
            settle().await;
        }
    }
    send(&mut client, &sent[at..]).await;
    for expected in &expected {
        assert_eq!(answer(&mut client).await.1, *expected);
    }
    assert_eq!(handler.requests_seen(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any requests in any pieces: each arrives once, unchanged and in order.
    #[test]
    fn any_requests_in_any_pieces_arrive(
        kinds in prop::collection::vec(0_u8..5, 1..12),
        mut cuts in prop::collection::vec((0..40_000_usize, any::<bool>()), 0..12),
    ) {
        cuts.sort();
        run(any_pieces::<false>(&kinds, &cuts));
        run(any_pieces::<true>(&kinds, &cuts));
    }
}
