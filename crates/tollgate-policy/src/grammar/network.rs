//! Addresses, networks and places to listen.

use super::Problem;
use crate::diagnostic::codes;
use crate::suggest::quoted;
use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, SocketAddr};

/// An address, or a network in CIDR notation. IPv4 written as IPv6 (`::ffff:10.0.0.0/104`) becomes IPv4, because
/// that is how clients are compared.
pub(crate) fn network(text: &str) -> Result<IpNet, Problem> {
    let parsed = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let net = parsed.map_err(|_| {
        let message = format!("{} is neither an address nor a network", quoted(text));
        let help = match text.parse::<SocketAddr>() {
            Ok(address) => format!("leave out the port: `{}`", address.ip()),
            Err(_) => {
                "write an address such as `10.0.0.1` or a network such as `10.0.0.0/8`".into()
            }
        };
        Problem::new(codes::BAD_NETWORK, message, help)
    })?;
    Ok(unmapped(net).trunc())
}

fn unmapped(net: IpNet) -> IpNet {
    match net {
        IpNet::V6(v6) if v6.prefix_len() >= 96 => v6
            .addr()
            .to_ipv4_mapped()
            .and_then(|v4| Ipv4Net::new(v4, v6.prefix_len() - 96).ok())
            .map_or(net, IpNet::V4),
        _ => net,
    }
}

/// An address and a port. Names are not resolved: where to listen must not depend on a name server.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, Problem> {
    text.parse().map_err(|_| {
        let message = format!("{} is not an address with a port", quoted(text));
        let port = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        let help = match (port, text.rsplit_once(':')) {
            (Some(port), Some(("" | "*", _)) | None) => {
                format!("write `0.0.0.0:{port}` for all interfaces, `127.0.0.1:{port}` for this machine only")
            }
            (Some(port), Some(("localhost", _))) => format!("write `127.0.0.1:{port}`"),
            _ => "write an address and a port, such as `127.0.0.1:8081` or `[::1]:8081`".to_owned(),
        };
        Problem::new(codes::BAD_LISTEN, message, help)
    })
}
