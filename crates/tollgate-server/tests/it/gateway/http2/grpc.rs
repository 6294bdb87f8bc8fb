//! gRPC through the gateway, with tonic's server and client.

use super::Gateway;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, body::Body as _, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{net::SocketAddr, thread};
use tokio::sync::{mpsc, oneshot};
use tonic::{Code, transport::Channel};
use tonic_health::{
    ServingStatus,
    pb::{HealthCheckRequest, health_client::HealthClient},
};

/// A health service; the sender sets its status.
fn server() -> (SocketAddr, mpsc::UnboundedSender<ServingStatus>) {
    let (sender, mut statuses) = mpsc::unbounded_channel();
    let (started, address) = oneshot::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async move {
            let (reporter, service) = tonic_health::server::health_reporter();
            reporter.set_service_status("shop", ServingStatus::Serving).await;
            let incoming =
                tonic::transport::server::TcpIncoming::bind("127.0.0.1:0".parse().unwrap());
            let incoming = incoming.unwrap();
            started.send(incoming.local_addr().unwrap()).unwrap();
            let serving = tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming);
            tokio::pin!(serving);
            loop {
                tokio::select! {
                    ended = &mut serving => return ended.unwrap(),
                    Some(status) = statuses.recv() => {
                        reporter.set_service_status("shop", status).await;
                    }
                }
            }
        });
    });
    (address.blocking_recv().unwrap(), sender)
}

fn question(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.into() }
}

#[test]
fn calls_streams_and_refusals() {
    let (address, statuses) = server();
    let gateway = Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: 'http://{address}', protocol: http2}}\n\
         limits: [{{name: checks, match: {{path: /grpc.health.v1.Health/Check}}, rate: 2/366d}}]\n"
    ));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = Channel::from_shared(format!("http://{}", gateway.address())).unwrap();
        let mut client = HealthClient::new(channel.connect().await.unwrap());
        let response = client.check(question("shop")).await.unwrap();
        assert!(response.metadata().contains_key("ratelimit"), "{response:?}");
        assert_eq!(response.into_inner().status, 1);
        // The upstream's error is in the trailers.
        let error = client.check(question("nobody")).await.unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{error:?}");
        let error = client.check(question("shop")).await.unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{error:?}");
        assert!(error.metadata().contains_key("retry-after"), "{error:?}");
        // A stream that stays open while the upstream sends messages.
        let mut stream = client.watch(question("shop")).await.unwrap().into_inner();
        assert_eq!(stream.message().await.unwrap().unwrap().status, 1);
        statuses.send(ServingStatus::NotServing).unwrap();
        assert_eq!(stream.message().await.unwrap().unwrap().status, 2);
        drop(stream);
    });
}

/// After the head of a refusal, some clients treat an empty frame as a broken stream, and see no
/// status.
#[test]
fn a_refusal_is_all_in_one_frame() {
    let (address, _statuses) = server();
    let gateway = Gateway::new(&format!(
        "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {{servers: 'http://{address}', protocol: http2}}\n\
         limits: [{{name: none, rate: 0/s}}]\n"
    ));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let uri = format!("http://{}/grpc.health.v1.Health/Check", gateway.address());
        let request = Request::post(uri).header("content-type", "application/grpc");
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.headers()["grpc-status"], "8");
        assert!(response.body().is_end_stream());
    });
}
