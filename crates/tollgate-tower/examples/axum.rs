//! One limit in an axum service: `cargo run -p tollgate-tower --features axum --example axum`, then
//! `curl -i http://127.0.0.1:3000/`.

use axum::Router;
use axum::routing::get;
use std::net::SocketAddr;
use tollgate::Quota;
use tollgate_tower::TollgateLayer;

/// Sixty requests a minute for each address, and five searches for each API key.
pub(crate) fn app() -> Router {
    let per_address = TollgateLayer::new(Quota::per_minute(60));
    let per_key = TollgateLayer::by(Quota::per_minute(5), |head| {
        let key = head.headers.get("x-api-key")?;
        Some(key.to_str().ok()?.into())
    });
    Router::new()
        .route("/search", get(async || "found\n").layer(per_key))
        .route("/", get(async || "hello\n"))
        .layer(per_address)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on {}", listener.local_addr()?);
    // With the peers' addresses, which a limit by address needs.
    axum::serve(listener, app().into_make_service_with_connect_info::<SocketAddr>()).await
}
