//! The example for tonic, over a socket.

use ::tonic::transport::Endpoint;
use ::tonic::{Code, Request, Status};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

#[path = "../../examples/tonic.rs"]
#[allow(dead_code, reason = "its main is for people")]
mod example;

fn request(user: &str) -> Request<HealthCheckRequest> {
    let mut request = Request::new(HealthCheckRequest::default());
    request.metadata_mut().insert("x-user-id", user.parse().unwrap());
    request
}

#[tokio::test]
async fn the_example_limits() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(example::serve(listener, async move { drop(stopped.await) }));
    let channel = Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    let mut client = HealthClient::new(channel);

    for left in ["2", "1", "0"] {
        let answer = client.check(request("42")).await.unwrap();
        assert_eq!(answer.metadata().get("x-ratelimit-remaining").unwrap(), left);
    }
    let refused: Status = client.check(request("42")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.metadata().contains_key("retry-after"), "{refused:?}");
    client.check(request("43")).await.unwrap();

    let first = client.watch(request("42")).await.unwrap();
    let second = client.watch(request("42")).await.unwrap();
    let refused = client.watch(request("42")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    drop((first, second, client, stop));
    server.await.unwrap().unwrap();
}
