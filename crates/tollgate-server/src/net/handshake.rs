//! TLS, on listeners that speak it.

use super::life::ConnectionState;
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
    life: &ConnectionState,
) -> Option<TlsStream<TcpStream>> {
    let mut accepting = pin!(TlsAcceptor::from(config).accept(stream));
    let accepted = life.until_closed(|context| accepting.as_mut().poll(context)).await?;
    accepted.map_err(|error| log_failure(&error, peer, life)).ok()
}

/// Logs a failed handshake as a warning: each reason of a listener once, and the first, second,
/// fourth and so on of all. So every kind of fault shows, and a flood does not fill the log.
#[cold]
fn log_failure(error: &io::Error, peer: SocketAddr, life: &ConnectionState) {
    let stats = &life.front.stats;
    let failures = stats.handshake_errors.fetch_add(1, Relaxed) + 1;
    let (kind, text) = reason(error);
    let bit = 1 << kind;
    let is_new = stats.handshake_reasons.fetch_or(bit, Relaxed) & bit == 0;
    if is_new || failures.is_power_of_two() {
        tracing::warn!(%peer, error = %text, failures, "TLS handshake failed");
    } else {
        tracing::debug!(%peer, error = %text, failures, "TLS handshake failed");
    }
}

/// The kind of a failure, below 64, and its text. The text of one kind may vary.
fn reason(error: &io::Error) -> (u32, String) {
    use rustls::{CertificateError, Error, PeerIncompatible};
    let text = error.to_string();
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return (u32::from(error.kind() == io::ErrorKind::UnexpectedEof), text);
    };
    let kind = match error {
        Error::InvalidMessage(_) => {
            return (2, format!("not TLS: the client sent something else ({text})"));
        }
        Error::NoCertificatesPresented => 3,
        Error::InvalidCertificate(why) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => 4,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => 5,
            CertificateError::UnknownIssuer => 6,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                7
            }
            CertificateError::BadSignature => 8,
            CertificateError::BadEncoding => 9,
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => 10,
            _ => 11,
        },
        Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered) => 12,
        Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon) => 13,
        Error::PeerIncompatible(_) => 14,
        Error::NoApplicationProtocol => 15,
        Error::PeerMisbehaved(_) => 16,
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => 17,
        // Alerts are numbers; those that clients send about a certificate are 42 to 49.
        Error::AlertReceived(alert) => 20 + u32::from(u8::from(*alert)) % 40,
        _ => 18,
    };
    (kind, text)
}
