//! The service: one route, and one of the layers.

use axum::Router;
use axum::routing::get;
use std::error::Error;
use std::net::SocketAddr;
use tollgate::Quota;
use tollgate::quota::Algorithm;
use tollgate_tower::TollgateLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;

/// What each is called here, and in the table. Rates are so high that nothing is refused.
pub(crate) const LAYERS: [(&str, &str); 5] = [
    ("none", "no layer"),
    ("governor", "`tower_governor`, by peer address"),
    ("governor-headers", "`tower_governor` with `use_headers`"),
    ("tollgate", "`TollgateLayer::new(quota)`, with `RateLimit` headers"),
    ("tollgate-gcra", "`TollgateLayer::new(quota)` with GCRA"),
];

pub(crate) fn serve(layer: &str) -> Result<(), Box<dyn Error>> {
    let router = Router::new().route("/orders/{id}", get(async || "hello\n"));
    let quota = Quota::per_second(4_000_000);
    let mut builder = GovernorConfigBuilder::default();
    builder.per_nanosecond(250).burst_size(4_000_000);
    let router = match layer {
        "none" => router,
        "governor" => {
            router.layer(GovernorLayer::new(builder.finish().ok_or("no configuration")?))
        }
        "governor-headers" => {
            let config = builder.use_headers().finish().ok_or("no configuration")?;
            router.layer(GovernorLayer::new(config))
        }
        "tollgate" => router.layer(TollgateLayer::new(quota)),
        "tollgate-gcra" => {
            router.layer(TollgateLayer::new(quota.with_algorithm(Algorithm::Gcra)?))
        }
        other => return Err(format!("no layer {other}").into()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        Ok(axum::serve(listener, service).await?)
    })
}
