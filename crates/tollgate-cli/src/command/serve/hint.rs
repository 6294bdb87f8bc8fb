//! Commands to try with the built-in policy.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tollgate_observe::metrics::Front;

/// Returns three shell commands, each after a description. Descriptions are on separate lines, so
/// that only the command is copied: some shells do not accept a comment after a command.
pub(super) fn text(addresses: &[(Front, SocketAddr)]) -> String {
    let Some((_, address)) = addresses.iter().find(|one| one.0 == Front::Http) else {
        return String::new();
    };
    let address = reachable(*address);
    let curl = |body: &str| {
        format!("curl -i -H content-type:application/json -d '{body}' http://{address}/v1/check")
    };
    let api = curl(r#"{"attributes": {"user": "ann", "path": "/api/orders"}}"#);
    let all = curl(r#"{"attributes": {"user": "ann", "path": "/api/export"}, "cost": 5}"#);
    let more = curl(r#"{"attributes": {"user": "ann", "path": "/api/export"}}"#);
    format!(
        "\n\
         No tollgate.yaml here, so this is the built-in policy. In another terminal:\n\
         \n\
         admitted, with RateLimit headers that say how much is left:\n\
         \n{api}\n\
         \n\
         spends the five exports of an hour at once:\n\
         \n{all}\n\
         \n\
         so the next one is refused: 429, with the exact Retry-After:\n\
         \n{more}\n\
         \n\
         Your own policy: tollgate serve --print-default-config > tollgate.yaml\n\n"
    )
}

/// Replaces an unspecified address by the loopback address, which can be connected to.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}
