//! A policy in an axum service:
//! `cargo run -p tollgate-tower --features axum --example axum_policy`, then
//! `curl -i -H 'x-user-id: 42' http://127.0.0.1:3000/`.

use axum::Router;
use axum::routing::{get, post};
use std::net::SocketAddr;
use tollgate_tower::{PolicyError, TollgateLayer};

/// Three requests a minute for each user, or for each address if the user is unknown. Only failed
/// logins count.
const POLICY: &str = r#"
identity: {user: header.x-user-id}
limits:
  - {name: per-user, match: {not: {path: /login}}, key: [user], rate: 3/min}
  - {name: per-address, match: {not: [{path: /login}, {user: "*"}]}, key: [ip], rate: 3/min}
  - name: login
    match: {path: /login, method: POST}
    key: [ip]
    rate: 5/min
    on_response: {refund: [2xx], penalty: [401]}
    penalty: {after: 3, block: 1m}
"#;

/// The service with its limits.
pub(crate) fn app() -> Result<Router, PolicyError> {
    let limits = TollgateLayer::from_yaml(POLICY)?.skip(|head| head.uri.path() == "/healthz");
    let router = Router::new()
        .route("/", get(async || "hello\n"))
        .route("/healthz", get(async || "ok\n"))
        .route("/login", post(async |body: String| login(&body)));
    Ok(router.layer(limits))
}

fn login(password: &str) -> http::StatusCode {
    if password == "correct" { http::StatusCode::OK } else { http::StatusCode::UNAUTHORIZED }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on {}", listener.local_addr()?);
    let service = app()?.into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}
