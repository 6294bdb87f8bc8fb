//! The bytes before HTTP: the PROXY protocol header, and TLS.

#[cfg(test)]
mod tests;

use super::ConnectionState;
use rustls::{CertificateError, Error, PeerIncompatible};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use std::{io, pin::pin};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Accepts TLS; `None` if the handshake fails or takes too long.
pub(crate) async fn handshake(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    peer: SocketAddr,
    state: &ConnectionState,
) -> Option<TlsStream<TcpStream>> {
    let mut accepting = pin!(TlsAcceptor::from(config).accept(stream));
    let accepted = state.until_closed(|context| accepting.as_mut().poll(context)).await?;
    accepted.map_err(|error| log_failure(&error, peer, state)).ok()
}

/// Logs a failed handshake. The first failure of each kind is a warning, and so is each failure
/// whose number is a power of two. So every kind shows, and a flood does not fill the log.
#[cold]
fn log_failure(error: &io::Error, peer: SocketAddr, state: &ConnectionState) {
    let stats = &state.listener.stats;
    let failures = stats.handshake_errors.fetch_add(1, Relaxed) + 1;
    let (kind, text) = failure_kind(error);
    let is_new = stats.handshake_reasons.fetch_or(1 << kind, Relaxed) & (1 << kind) == 0;
    if is_new || failures.is_power_of_two() {
        tracing::warn!(%peer, error = %text, failures, "TLS handshake failed");
    } else {
        tracing::debug!(%peer, error = %text, failures, "TLS handshake failed");
    }
}

/// The number of the failure's kind, below 64, and its text. Texts may differ within a kind.
fn failure_kind(error: &io::Error) -> (u32, String) {
    use CertificateError as Cert;
    let text = error.to_string();
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return (u32::from(error.kind() == io::ErrorKind::UnexpectedEof), text);
    };
    let kind = match error {
        Error::InvalidMessage(_) => {
            return (2, format!("not TLS: the client sent something else ({text})"));
        }
        Error::NoCertificatesPresented => 3,
        Error::InvalidCertificate(reason) => match reason {
            Cert::Expired | Cert::ExpiredContext { .. } => 4,
            Cert::NotValidYet | Cert::NotValidYetContext { .. } => 5,
            Cert::UnknownIssuer => 6,
            Cert::NotValidForName | Cert::NotValidForNameContext { .. } => 7,
            Cert::BadSignature => 8,
            Cert::BadEncoding => 9,
            Cert::InvalidPurpose | Cert::InvalidPurposeContext { .. } => 10,
            _ => 11,
        },
        Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered) => 12,
        Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon) => 13,
        Error::PeerIncompatible(_) => 14,
        Error::NoApplicationProtocol => 15,
        Error::PeerMisbehaved(_) => 16,
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => 17,
        // TLS alerts about certificates have the numbers 42 to 49.
        Error::AlertReceived(alert) => 20 + u32::from(u8::from(*alert)) % 40,
        _ => 18,
    };
    (kind, text)
}

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Limit of the addresses and extensions of a header.
const BYTES_MAX: usize = 4096;

/// Reads the PROXY protocol header, version 2, and no byte more. `None`: the load balancer connects
/// for itself, as for a health check.
pub(crate) async fn read_proxy_header(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<SocketAddr>> {
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let mut head = [0; 16];
    stream.read_exact(&mut head).await?;
    if head[..12] != *SIGNATURE {
        return Err(bad());
    }
    let len = usize::from(u16::from_be_bytes([head[14], head[15]]));
    if len > BYTES_MAX {
        return Err(bad());
    }
    let mut rest = vec![0; len];
    stream.read_exact(&mut rest).await?;
    match (head[12], head[13]) {
        // LOCAL, and families without an IP address: unspecified and Unix.
        (0x20, _) | (0x21, 0x00 | 0x31 | 0x32) => Ok(None),
        (0x21, 0x11 | 0x12) => {
            let (&[a, b, c, d, _, _, _, _, high, low], _) =
                rest.split_first_chunk::<10>().filter(|_| len >= 12).ok_or_else(bad)?;
            let ip = Ipv4Addr::new(a, b, c, d);
            Ok(Some((IpAddr::from(ip), u16::from_be_bytes([high, low])).into()))
        }
        (0x21, 0x21 | 0x22) => {
            let (ip, after) =
                rest.split_first_chunk::<16>().filter(|_| len >= 36).ok_or_else(bad)?;
            let port = u16::from_be_bytes([after[16], after[17]]);
            Ok(Some((IpAddr::from(Ipv6Addr::from(*ip)), port).into()))
        }
        _ => Err(bad()),
    }
}
