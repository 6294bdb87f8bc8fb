//! What holds for connections whose requests go on to somebody else.

use super::{
    super::{BoxError, Caller, Upload},
    *,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::MapErr};
use std::convert::Infallible;

/// Takes its time to answer, and reads bodies first.
struct Far;

impl Relay for Far {
    type Body = MapErr<Full<Bytes>, fn(Infallible) -> BoxError>;

    async fn relay(
        &self,
        request: hyper::Request<Upload>,
        _: &Rc<Caller>,
    ) -> hyper::Response<Self::Body> {
        request.into_body().collect().await.unwrap();
        tokio::time::sleep(seconds(3)).await;
        let body = Full::new(Bytes::from_static(b"far"));
        hyper::Response::new(body.map_err(|never: Infallible| match never {}))
    }
}

/// A head that began while another request was under way has a head's time after it, and is told so.
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
            let mut client = rig.connect_to(&Rc::new(Far));
            let mut next = "GET /b HTTP/1.1\r\nho";
            if together {
                client.write_all(format!("{first}{next}").as_bytes()).await.unwrap();
            } else {
                client.write_all(first.as_bytes()).await.unwrap();
                tokio::time::sleep(seconds(1)).await;
                client.write_all(next.as_bytes()).await.unwrap();
                next = "";
            }
            assert_eq!(answer(&mut client).await.1, "far", "{first}{next}");
            assert!(answer(&mut client).await.0.starts_with("http/1.1 408"), "{first}{next}");
            rig.passed(seconds(3 + 10));
        });
    }
}

/// What ends a body for some clients begins nothing.
#[test]
fn an_empty_line_is_no_head() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&Rc::new(Far));
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
        let mut client = rig.connect_to(&Rc::new(Far));
        client.write_all(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HT").await.unwrap();
        answer(&mut client).await;
        client.write_all(b"TP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert_eq!(answer(&mut client).await.1, "far");
        // Now it is idle.
        assert_eq!(rest(&mut client).await, 0);
        rig.passed(seconds(3 + 3 + 60));
    });
}
