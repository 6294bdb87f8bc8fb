//! Parses addresses, networks and listen addresses.

use super::Problem;
use crate::diagnostic::{codes, quoted};
use crate::settings::ListenAddress;
use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, SocketAddr};

/// Parses an address, or a network in CIDR notation. IPv4-mapped IPv6 (`::ffff:10.0.0.0/104`)
/// becomes IPv4, the form in which clients are compared.
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

/// Parses a listen address: an IP address or a host name, and a port.
pub(crate) fn listen(text: &str) -> Result<ListenAddress, Problem> {
    if let Ok(address) = text.parse() {
        return Ok(ListenAddress::Ip(address));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let port = port.parse::<u16>().ok();
    if let Some(port) = port.filter(|_| is_host_name(host)) {
        return Ok(ListenAddress::Name(host.into(), port));
    }
    let message = format!("{} is not an address with a port", quoted(text));
    let help = match (port, host) {
        (Some(port), "" | "*") => {
            format!("write `0.0.0.0:{port}` for all interfaces, `127.0.0.1:{port}` for this machine only")
        }
        _ => "write an address or a name and a port, such as `127.0.0.1:8081`, `[::1]:8081` or `localhost:8081`".to_owned(),
    };
    Err(Problem::new(codes::BAD_LISTEN, message, help))
}

/// Parses a listen address from a command line.
///
/// # Errors
///
/// Explains why the text is not a listen address, and what to write.
pub fn parse_listen(text: &str) -> Result<ListenAddress, String> {
    listen(text).map_err(|problem| format!("{}; {}", problem.message, problem.help))
}

/// Whether the text is a host name: labels of letters, digits, `-` and `_` between dots. A last
/// label of digits is refused: `256.0.0.1` is a mistyped address.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(allowed) && !label.starts_with('-')
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253
        && name.split('.').all(is_label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}
