//! TLS, on listeners that speak it.

#[cfg(test)]
mod tests;

use super::ConnectionState;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The encrypted stream. `None` where the client does not speak TLS, shows the wrong certificate,
/// or takes too long.
pub(crate) async fn handshake(
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

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Addresses and what may be said beside them, at most.
const BYTES_MAX: usize = 4096;

/// Reads the header, and not a byte more. `None`: the balancer speaks for itself.
///
/// # Errors
///
/// When it is not one, or says something that has no meaning; the connection is then good for
/// nothing.
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
        // LOCAL: the family says nothing.
        (0x20, _) => Ok(None),
        // Unspecified, and sockets of a machine's own, have no address.
        (0x21, 0x00 | 0x31 | 0x32) => Ok(None),
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
