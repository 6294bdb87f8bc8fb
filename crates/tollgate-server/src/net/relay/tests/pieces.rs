//! However the bytes of requests are cut, they are the same requests.

use super::{Rig, Way, answer, ask, get, post, run, settle};
use tokio::io::AsyncWriteExt;

/// Looks like a request, and is none.
const BODY: &str = "GET /smuggled HTTP/1.1\r\nhost: y\r\n\r\n";

#[test]
fn small_bodies_take_the_short_way() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect();
        for method in ["POST", "PUT", "PATCH", "DELETE", "GET"] {
            let request = post("/a", BODY).replacen("POST", method, 1);
            let expected = format!("{method} /a {BODY}");
            assert_eq!(ask(&mut client, &request).await, expected);
            assert_eq!(rig.came(), [(Way::Short, expected)]);
        }
        let empty = "POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(ask(&mut client, empty).await, "POST /a ");
        assert_eq!(rig.came(), [(Way::Short, "POST /a ".into())]);
    });
}

#[test]
fn bodies_that_are_large_or_of_no_known_length_do_not() {
    run(async {
        let rig = Rig::new();
        let large = "x".repeat(8 * 1024);
        let chunked =
            "POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
        let expecting = post("/a", "x").replace("\r\n\r\n", "\r\nexpect: 200-ok\r\n\r\n");
        for (request, body) in
            [(post("/a", &large), &*large), (chunked.into(), "x"), (expecting, "x")]
        {
            let mut client = rig.connect();
            let expected = format!("POST /a {body}");
            assert_eq!(ask(&mut client, &request).await, expected);
            assert_eq!(rig.came(), [(Way::Long, expected)]);
        }
    });
}

/// A request that the handler declines comes to it again with its whole body.
#[test]
fn what_is_declined_arrives_whole() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect();
        let both = [post("/declined", BODY), get("/next")].concat();
        client.write_all(both.as_bytes()).await.unwrap();
        assert_eq!(answer(&mut client).await.1, format!("POST /declined {BODY}"));
        assert_eq!(answer(&mut client).await.1, "GET /next ");
        assert_eq!(rig.came()[0].0, Way::Declined);
    });
}

#[test]
fn every_cut_gives_the_same_requests() {
    run(async {
        let rig = Rig::new();
        let requests = [post("/1", BODY), get("/2"), post("/3", ""), post("/4", BODY)].concat();
        let expected = [
            format!("POST /1 {BODY}"),
            "GET /2 ".into(),
            "POST /3 ".into(),
            format!("POST /4 {BODY}"),
        ];
        for cut in 0..requests.len() {
            let mut client = rig.connect();
            for piece in [&requests[..cut], &requests[cut..]] {
                client.write_all(piece.as_bytes()).await.unwrap();
                settle().await;
            }
            for expected in &expected {
                assert_eq!(answer(&mut client).await.1, *expected, "at {cut}");
            }
            let came: Vec<_> = rig.came().into_iter().map(|(_, text)| text).collect();
            assert_eq!(came, expected, "at {cut}");
        }
    });
}

#[test]
fn byte_by_byte_too() {
    run(async {
        let rig = Rig::new();
        let mut client = rig.connect();
        for byte in [post("/1", BODY), get("/2"), post("/3", BODY)].concat().bytes() {
            client.write_all(&[byte]).await.unwrap();
            settle().await;
        }
        for expected in [format!("POST /1 {BODY}"), "GET /2 ".into(), format!("POST /3 {BODY}")] {
            assert_eq!(answer(&mut client).await.1, expected);
        }
        assert_eq!(rig.came().len(), 3);
    });
}
