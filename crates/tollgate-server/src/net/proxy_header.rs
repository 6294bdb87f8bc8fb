//! The header of the PROXY protocol, version 2: who a load balancer in front speaks for.

#[cfg(test)]
mod tests;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};
use tokio::io::{AsyncRead, AsyncReadExt};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Addresses and what may be said beside them, at most.
const BYTES_MAX: usize = 4096;

/// Reads the header, and not a byte more. `None`: the balancer speaks for itself.
///
/// # Errors
///
/// When it is not one, or says something that has no meaning; the connection is then good for
/// nothing.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
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
