//! The canonical form of an address: first unmapped, then masked. Masking first would put all of
//! IPv4 into one bucket.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

/// Converts an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) to IPv4.
#[inline]
pub fn unmap(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Converts an IPv4-mapped IPv6 network (`::ffff:10.0.0.0/104`) to IPv4.
pub fn unmap_net(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let (Some(address), Some(prefix)) =
        (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96))
    else {
        return net;
    };
    Ipv4Net::new(address, prefix).map_or(net, IpNet::V4)
}

/// Unmaps an address and masks an IPv6 address to its prefix. A prefix over 128 bits keeps the
/// whole address.
#[inline]
pub fn mask(address: IpAddr, ipv6_prefix: u8) -> IpAddr {
    match unmap(address) {
        IpAddr::V6(v6) => {
            let dropped = 128 - u32::from(ipv6_prefix.min(128));
            let kept = u128::MAX.checked_shl(dropped).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & kept))
        }
        v4 => v4,
    }
}
