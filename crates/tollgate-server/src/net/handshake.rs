//! TLS, on listeners that speak it.

use super::life::Life;
use std::{pin::pin, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The encrypted stream; `None` where the client speaks something else, shows the wrong certificate, or takes too long.
pub(super) async fn handshake(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    life: &Life,
) -> Option<TlsStream<TcpStream>> {
    let mut accepting = pin!(TlsAcceptor::from(config).accept(stream));
    let accepted = life.until_closed(|context| accepting.as_mut().poll(context)).await?;
    if let Err(error) = &accepted {
        tracing::debug!(%error, "a TLS handshake failed");
    }
    accepted.ok()
}
