//! The examples for axum, over a socket.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[path = "../../examples/axum.rs"]
#[allow(dead_code, reason = "its main is for people")]
mod quota;

#[path = "../../examples/axum_policy.rs"]
#[allow(dead_code, reason = "its main is for people")]
mod policy;

async fn serve(app: ::axum::Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { ::axum::serve(listener, service).await });
    address
}

fn status(answer: &str) -> u16 {
    answer[9..12].parse().unwrap()
}

/// Sends one request on a new connection, and returns the whole response.
async fn ask(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request =
        format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_quotas_of_the_example_hold() {
    let address = serve(quota::app()).await;
    let search = async |key: &str| {
        ask(address, &format!("GET /search HTTP/1.1\r\nx-api-key: {key}"), "").await
    };
    for _ in 0..5 {
        assert_eq!(status(&search("one").await), 200);
    }
    let refused = search("one").await;
    assert_eq!(status(&refused), 429, "{refused}");
    assert!(refused.contains("retry-after: ") && refused.contains("ratelimit: "), "{refused}");
    assert_eq!(status(&search("two").await), 200, "another key");
    // Seven requests so far, the refused one included: the outer layer counted it.
    for _ in 0..53 {
        assert_eq!(status(&ask(address, "GET / HTTP/1.1", "").await), 200);
    }
    assert_eq!(status(&ask(address, "GET / HTTP/1.1", "").await), 429);
    assert_eq!(status(&search("three").await), 429, "by address");
}

#[tokio::test]
async fn the_policy_of_the_example_holds() {
    let address = serve(policy::app().unwrap()).await;

    let user = "GET / HTTP/1.1\r\nx-user-id: 42";
    let first = ask(address, user, "").await;
    assert!(first.contains("ratelimit-policy: \"per-user\";q=3;w=60"), "{first}");
    assert!(first.ends_with("hello\n"), "{first}");
    for expected in [200, 200, 429] {
        assert_eq!(status(&ask(address, user, "").await), expected);
    }
    for expected in [200, 200, 200, 429] {
        assert_eq!(status(&ask(address, "GET / HTTP/1.1", "").await), expected, "by address");
    }
    for _ in 0..10 {
        assert_eq!(status(&ask(address, "GET /healthz HTTP/1.1", "").await), 200);
        assert_eq!(status(&ask(address, "POST /login HTTP/1.1", "correct").await), 200);
    }
    for expected in [401, 401, 401, 429] {
        assert_eq!(status(&ask(address, "POST /login HTTP/1.1", "wrong").await), expected);
    }
    let blocked = ask(address, "POST /login HTTP/1.1", "correct").await;
    assert!(blocked.contains("x-tollgate-source: blocked"), "{blocked}");
}
