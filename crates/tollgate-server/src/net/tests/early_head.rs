//! Heads that begin while an earlier request is under way.

use super::*;
use crate::net::RequestBody;

/// Reads the body of a request, then takes three seconds to answer.
struct SlowHandler;

impl Handler for SlowHandler {
    const CANCEL_ON_CLIENT_CLOSE: bool = true;

    async fn handle(&self, request: Request<'_>, _: &Rc<ClientConnection>, answer: &mut Answer) {
        if let RequestBody::Stream(upload) = request.body {
            assert!(upload.collect(1 << 20, seconds(60)).await.is_ok());
        }
        tokio::time::sleep(seconds(3)).await;
        answer.body.extend_from_slice(b"slow");
    }
}

/// A head that began while another request was under way has a head's time after it, and is told
/// so.
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

/// An empty line after a body begins no head: some clients end bodies with one.
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

/// The rest of a head that began early makes a request like any other.
#[test]
fn an_early_head_may_end_late() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::new(SlowHandler));
        client.write_all(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HT").await.unwrap();
        answer(&mut client).await;
        client.write_all(b"TP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert_eq!(answer(&mut client).await.1, "slow");
        // Now it is idle.
        assert_eq!(rest(&mut client).await, 0);
        rig.passed(seconds(3 + 3 + 60));
    });
}
