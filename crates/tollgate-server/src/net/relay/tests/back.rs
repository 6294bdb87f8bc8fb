//! A connection that took the long way for a request comes back for the next.

use super::{LARGE, Rig, Way, answer, ask, get, post, run, settle};
use crate::net::life::Order;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A request that only the full protocol takes.
fn long(path: &str) -> String {
    get(path).replace("\r\n\r\n", "\r\nkeep-alive: 5\r\n\r\n")
}

fn ways(rig: &Rig) -> Vec<Way> {
    rig.came().into_iter().map(|(way, _)| way).collect()
}

#[test]
fn the_next_plain_request_takes_the_short_way() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect();
        let chunked =
            "PUT /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
        let upgrade = get("/u").replace("host", "upgrade: y\r\nhost");
        let unread = post("/early", "x").replace("host", "keep-alive: 5\r\nhost");
        for unusual in [long("/a"), long("/b"), chunked.into(), upgrade, unread, get("/declined")] {
            client.write_all(unusual.as_bytes()).await.unwrap();
            let (head, _) = answer(&mut client).await;
            assert!(!head.contains("connection"), "{head}");
            assert_eq!(ask(&mut client, &get("/plain")).await, "GET /plain ");
            let ways = ways(&rig);
            assert_eq!((ways.len(), ways[1]), (2, Way::Short), "{unusual}");
        }
    });
}

#[test]
fn a_body_that_was_asked_for_is_no_hindrance() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect();
        let head =
            "POST /a HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        let mut go_on = [0; 25];
        client.read_exact(&mut go_on).await.unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(ask(&mut client, "abc").await, "POST /a abc");
        assert_eq!(ask(&mut client, &get("/plain")).await, "GET /plain ");
        assert_eq!(ways(&rig), [Way::Long, Way::Short]);
    });
}

/// Where all plain requests are declined, ever fewer are tried, and one that is not makes up for it.
#[test]
fn declined_requests_are_tried_ever_less() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect();
        for _ in 0..300 {
            ask(&mut client, &get("/declined")).await;
        }
        let tried = ways(&rig).iter().filter(|way| **way == Way::Declined).count();
        assert!((8..=12).contains(&tried), "{tried}");
        while {
            ask(&mut client, &get("/plain")).await;
            ways(&rig)[0] != Way::Short
        } {}
        for _ in 0..2 {
            ask(&mut client, &get("/declined")).await;
            ask(&mut client, &get("/plain")).await;
        }
        assert_eq!(ways(&rig), [Way::Declined, Way::Short].repeat(2));
    });
}

#[test]
fn version_1_0_stays() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect();
        for _ in 0..3 {
            let old = "GET /a HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\n\r\n";
            assert_eq!(ask(&mut client, old).await, "GET /a ");
        }
        assert_eq!(ways(&rig), [Way::Long; 3]);
    });
}

#[test]
fn pipelined_requests_keep_their_order() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect();
        let all = [get("/1"), long("/2"), get("/3"), post("/4", "x"), long("/5"), get("/6")];
        client.write_all(all.concat().as_bytes()).await.unwrap();
        for expected in ["GET /1 ", "GET /2 ", "GET /3 ", "POST /4 x", "GET /5 ", "GET /6 "] {
            assert_eq!(answer(&mut client).await.1, expected);
        }
        ask(&mut client, &get("/7")).await;
        assert_eq!(rig.came().pop(), Some((Way::Short, "GET /7 ".into())));
    });
}

/// While an answer is under way, or still to be written, nothing ends.
#[test]
fn what_comes_early_does_not_cut_an_answer_short() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect_with(1000);
        client.write_all(long("/large").as_bytes()).await.unwrap();
        settle().await;
        client.write_all(get("/next").as_bytes()).await.unwrap();
        settle().await;
        let (head, body) = answer(&mut client).await;
        assert!(body == LARGE.repeat(10_000), "{head}");
        assert_eq!(answer(&mut client).await.1, "GET /next ");

        client.write_all(long("/wait").as_bytes()).await.unwrap();
        settle().await;
        client.write_all(get("/next").as_bytes()).await.unwrap();
        settle().await;
        rig.desk.go.notify_one();
        assert_eq!(answer(&mut client).await.1, "GET /wait ");
        assert_eq!(answer(&mut client).await.1, "GET /next ");
        assert_eq!(ask(&mut client, &get("/last")).await, "GET /last ");
        assert_eq!(rig.came().pop(), Some((Way::Short, "GET /last ".into())));
    });
}

/// An answer may come before all of a body has. The rest of it is not a request.
#[test]
fn the_rest_of_a_body_is_no_request() {
    run(async {
        let rig = Rig::new();
        for sent in [0, 1, 10] {
            let mut client = rig.connect();
            let request = post("/early", &get("/smuggled").repeat(2));
            let cut = request.find("GET").unwrap() + sent;
            client.write_all(&request.as_bytes()[..cut]).await.unwrap();
            answer(&mut client).await;
            // The connection may have ended.
            client.write_all(&request.as_bytes()[cut..]).await.ok();
            settle().await;
            assert_eq!(ways(&rig), [Way::Long], "{sent}");
        }
    });
}

#[test]
fn a_connection_that_is_to_end_says_so() {
    run(async {
        let rig = Rig::new();
        let (mut client, life) = rig.connect_and_see(1000);
        ask(&mut client, &long("/a")).await;
        life.tell(Order::Finish);
        client.write_all(get("/b").as_bytes()).await.unwrap();
        let (head, _) = answer(&mut client).await;
        assert!(head.contains("connection: close"), "{head}");
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(ways(&rig), [Way::Long; 2]);
    });
}

/// One of the requests above, by its number, and what it is answered with.
fn request(kind: u8, path: usize) -> (String, String) {
    let path = format!("/{path}");
    let body = "GET /x HTTP/1.1\r\n\r\n";
    match kind {
        0 => (get(&path), format!("GET {path} ")),
        1 => (long(&path), format!("GET {path} ")),
        2 => (post(&path, body), format!("POST {path} {body}")),
        3 => (get(&format!("/declined{path}")), format!("GET /declined{path} ")),
        4 => (post(&format!("/declined{path}"), body), format!("POST /declined{path} {body}")),
        _ => {
            let head =
                format!("PUT {path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
            (format!("{head}2;a\r\n\r\n\r\n0\r\n\r\n"), format!("PUT {path} \r\n"))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is sent, in whatever pieces, with the answers read or not in between: each request arrives once, as it was, and in order.
    #[test]
    fn any_requests_in_any_pieces_arrive(
        kinds in prop::collection::vec(0_u8..6, 1..12),
        mut cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..12),
    ) {
        let (sent, expected): (Vec<_>, Vec<_>) =
            kinds.iter().enumerate().map(|(n, kind)| request(*kind, n)).unzip();
        let sent = sent.concat();
        run(async {
            let rig = Rig::new();
            let mut client = rig.connect();
            cuts.sort_by_key(|cut| cut.0.index(sent.len()));
            let mut at = 0;
            for (cut, pause) in cuts {
                let end = cut.index(sent.len());
                client.write_all(&sent.as_bytes()[at..end]).await.unwrap();
                at = end;
                if pause {
                    settle().await;
                }
            }
            client.write_all(&sent.as_bytes()[at..]).await.unwrap();
            for expected in &expected {
                assert_eq!(answer(&mut client).await.1, *expected);
            }
            let came: Vec<_> = rig.came().into_iter().map(|(_, text)| text).collect();
            assert_eq!(came, expected);
        });
    }
}
