//! The check API over HTTP/2, on the same port.

use super::*;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use tollgate_faults::clock::wait_until;

type FullBodyClient = http2::SendRequest<Full<Bytes>>;

async fn connect(served: &Served) -> FullBodyClient {
    let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let (client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn ask(
    client: &mut FullBodyClient,
    path: &str,
    body: impl Into<Bytes>,
) -> (Response<Incoming>, ()) {
    let request = Request::post(format!("http://x{path}"))
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap();
    (client.send_request(request).await.unwrap(), ())
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn answers_are_the_same() {
    let served = serve("limits: [{name: a, rate: 1/h, algorithm: gcra}]");
    run(async {
        let mut client = connect(&served).await;
        let (response, ()) = ask(&mut client, "/v1/check", "{}").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["ratelimit-policy"], r#""a";q=1;w=3600"#);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let json: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(json["limits"][0]["remaining"], 0);
        let (response, ()) = ask(&mut client, "/v1/check", "{}").await;
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "3600");
    });
}

#[test]
fn problems_end_a_stream_and_not_the_connection() {
    let served = serve("limits: []");
    run(async {
        let mut client = connect(&served).await;
        for (path, body, status) in [
            ("/v1/check", "{".to_owned(), 400),
            ("/v1/nothing", "{}".to_owned(), 404),
            ("/v1/check", " ".repeat(65_537), 413),
            ("/v1/check", "{}".to_owned(), 200),
        ] {
            let (response, ()) = ask(&mut client, path, body).await;
            assert_eq!(response.status(), status);
            if status != 200 {
                assert_eq!(response.headers()["content-type"], "application/problem+json");
            }
        }
    });
}

/// curl 7.88 loses a complete answer if its stream is reset while it sends, even with NO_ERROR.
#[test]
fn a_client_that_still_sends_its_body_gets_the_413() {
    let served = serve("limits: []");
    for length in ["content-length: 1000000", "x-length: none"] {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--http2-prior-knowledge", "-X", "POST", "-T", "-", "-H", length])
            .args(["-H", "content-type: application/json", "-w", " %{http_code}"])
            .arg(format!("http://{}/v1/check", served.address));
        curl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut curl = curl.spawn().expect("curl");
        let mut body = curl.stdin.take().unwrap();
        let sending = thread::spawn(move || body.write_all(&[b' '; 1_000_000]));
        let output = curl.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.ends_with(" 413"), "{length}: {said} {error}");
        assert!(said.contains(r#""field":"body""#), "{said}");
        let _ = sending.join().unwrap();
    }
}

#[test]
fn streams_are_decided_exactly() {
    let served = serve("limits: [{name: a, rate: 100/h, algorithm: fixed-window}]");
    run(async {
        let client = connect(&served).await;
        let asked: Vec<_> = (0..300)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move { ask(&mut client, "/v1/check", "{}").await.0.status() })
            })
            .collect();
        let mut admitted = 0;
        for asked in asked {
            admitted += usize::from(asked.await.unwrap() == 200);
        }
        assert_eq!(admitted, 100);
    });
}

#[test]
fn the_reservation_of_a_client_that_leaves_the_queue_is_cancelled() {
    let served =
        serve("shed: {adaptive: {min: 1, max: 1}}\nlimits: [{name: a, key: [user], rate: 9/min}]");
    let body = r#"{"attributes": {"user": "ann"}, "ttl": "1h"}"#;
    assert_eq!(served.post("/v1/reserve", body).status, 200, "has the only slot");
    run(async {
        let waits = async || {
            while served.node.gate.adaptive().unwrap().waiting == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        loop {
            let mut client = connect(&served).await;
            tokio::select! {
                _ = ask(&mut client, "/v1/reserve", body) => {}
                () = waits() => break,
            }
        }
    });
    let body = r#"{"attributes": {"user": "ann"}}"#;
    let remaining = || served.post("/v1/peek", body).json()["limits"][0]["remaining"].as_u64();
    assert!(wait_until(PATIENCE, || remaining() == Some(8)), "{:?}", remaining());
}
