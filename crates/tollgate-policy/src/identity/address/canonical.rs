//! One form for each address: first unmapped, then masked. The other way round all of IPv4 is one
//! bucket.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

/// An IPv4 address written as IPv6 (`::ffff:192.0.2.1`) as what it is.
#[inline]
pub fn unmap(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// An IPv4 network written as IPv6 (`::ffff:10.0.0.0/104`) as what it is.
pub fn unmap_net(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let (Some(address), Some(prefix)) =
        (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96))
    else {
        return net;
    };
    Ipv4Net::new(address, prefix).map_or(net, IpNet::V4)
}

/// Unmapped, and of an IPv6 address only the prefix; longer than 128 bits is all of it.
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
