//! The service: one route, and one of the layers.

use crate::pass::PassLayer;
use axum::Router;
use axum::routing::get;
use std::error::Error;
use std::net::SocketAddr;
use tollgate::Quota;
use tollgate::quota::Algorithm;
use tollgate_tower::TollgateLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;

/// A row of the table.
pub struct LayerRow {
    /// The name on the command line.
    pub name: &'static str,
    /// The name in the table.
    pub title: &'static str,
    /// The row for comparison.
    pub peer: Option<&'static str>,
}

const fn row(name: &'static str, title: &'static str, peer: Option<&'static str>) -> LayerRow {
    LayerRow { name, title, peer }
}

/// All layers. Rates are high enough that no request is refused.
pub const LAYERS: [LayerRow; 8] = [
    row("none", "no layer", None),
    row("pass", "a layer that does nothing", None),
    row("governor", "`tower_governor`, by peer address", None),
    row("governor-headers", "`tower_governor` with `use_headers`", None),
    row(
        "tollgate",
        "`TollgateLayer::new(quota)`, with `RateLimit` headers",
        Some("governor-headers"),
    ),
    row("tollgate-gcra", "`TollgateLayer::new(quota)` with GCRA", Some("governor-headers")),
    row(
        "tollgate-bare",
        "`TollgateLayer::new(quota).without_headers()` with GCRA",
        Some("governor"),
    ),
    row("tollgate-policy", "`TollgateLayer::from_yaml`, a policy of three limits", None),
];

const POLICY: &str = r#"
limits:
  - {name: per-address, key: [ip], rate: 4000000/s}
  - {name: per-client, key: [header.authorization], rate: 4000000/s}
  - {name: orders, match: {path: "/orders/**"}, key: [ip], rate: 4000000/s}
"#;

/// The service with the layer of this name.
pub fn router(layer: &str) -> Result<Router, Box<dyn Error>> {
    let router = Router::new().route("/orders/{id}", get(async || "hello\n"));
    // The largest count whose state fits one word with the default algorithm.
    let quota = Quota::per_day(8_000_000);
    let gcra = Quota::per_second(4_000_000).with_algorithm(Algorithm::Gcra)?;
    let mut builder = GovernorConfigBuilder::default();
    builder.per_nanosecond(250).burst_size(4_000_000);
    Ok(match layer {
        "none" => router,
        "pass" => router.layer(PassLayer),
        "governor" => router.layer(GovernorLayer::new(builder.finish().ok_or("no configuration")?)),
        "governor-headers" => {
            let config = builder.use_headers().finish().ok_or("no configuration")?;
            router.layer(GovernorLayer::new(config))
        }
        "tollgate" => router.layer(TollgateLayer::new(quota)),
        "tollgate-gcra" => router.layer(TollgateLayer::new(gcra)),
        "tollgate-bare" => router.layer(TollgateLayer::new(gcra).without_headers()),
        "tollgate-policy" => router.layer(TollgateLayer::from_yaml(POLICY)?),
        other => return Err(format!("no layer {other}").into()),
    })
}

/// Serves until the process ends. Prints the address.
pub fn serve(layer: &str) -> Result<(), Box<dyn Error>> {
    let router = router(layer)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        Ok(axum::serve(listener, service).await?)
    })
}
