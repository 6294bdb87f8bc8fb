//! TLS, on listeners that speak it.

use super::life::Life;
use std::{
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The encrypted stream. `None` where the client does not speak TLS, shows the wrong certificate,
/// or takes too long.
pub(super) async fn handshake(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    peer: SocketAddr,
    life: &Life,
) -> Option<TlsStream<TcpStream>> {
    let mut accepting = pin!(TlsAcceptor::from(config).accept(stream));
    let accepted = life.until_closed(|context| accepting.as_mut().poll(context)).await?;
    accepted.map_err(|error| failed(&error, peer, life)).ok()
}

/// Logs a failed handshake: the first, second, fourth and so on of a listener as a warning. So a
/// client with the wrong certificate shows, and a flood of them does not fill the log.
#[cold]
fn failed(error: &io::Error, peer: SocketAddr, life: &Life) {
    let failures = life.front.stats.handshake_errors.fetch_add(1, Relaxed) + 1;
    if failures.is_power_of_two() {
        tracing::warn!(%peer, %error, failures, "TLS handshake failed");
    } else {
        tracing::debug!(%peer, %error, failures, "TLS handshake failed");
    }
}
