//! Limits in a tonic server: `cargo run -p tollgate-tower --example tonic`. A client that sends too
//! many requests gets the status RESOURCE_EXHAUSTED.

use std::future::Future;
use tokio::net::TcpListener;
use tollgate_tower::TollgateLayer;
use tonic::transport::server::{Server, TcpConnectInfo, TcpIncoming};

/// Methods are paths, and metadata are headers.
const POLICY: &str = r#"
identity: {user: header.x-user-id}
limits:
  - {name: checks, match: {path: /grpc.health.v1.Health/Check}, key: [user], on_missing: share, rate: 3/min}
  - {name: streams, match: {path: /grpc.health.v1.Health/Watch}, key: [ip], algorithm: concurrency, rate: 2, ttl: 1h}
"#;

/// Serves the standard health service until `end`.
pub(crate) async fn serve(
    listener: TcpListener,
    end: impl Future<Output = ()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let limits = TollgateLayer::from_yaml(POLICY)?.peer(|head| {
        let info = head.extensions.get::<TcpConnectInfo>()?;
        info.remote_addr().map(|address| address.ip())
    });
    let (_reporter, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(limits).add_service(health);
    Ok(server.serve_with_incoming_shutdown(TcpIncoming::from(listener), end).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let listener = TcpListener::bind("127.0.0.1:50051").await?;
    println!("listening on {}", listener.local_addr()?);
    serve(listener, std::future::pending()).await
}
