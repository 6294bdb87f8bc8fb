//! Many networks, found by a binary search.

use ipnet::IpNet;
use std::net::IpAddr;

/// Ranges of addresses, sorted and apart from each other, so a list of thousands costs what a short one does.
#[derive(Debug)]
pub(super) struct Networks {
    v4: Box<[(u32, u32)]>,
    v6: Box<[(u128, u128)]>,
}

impl Networks {
    pub(super) fn new(networks: &[IpNet]) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in networks {
            match network {
                IpNet::V4(net) => v4.push((net.network().into(), net.broadcast().into())),
                IpNet::V6(net) => v6.push((net.network().into(), net.broadcast().into())),
            }
        }
        Self { v4: merged(v4), v6: merged(v6) }
    }

    pub(super) fn contain(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => contains(&self.v4, v4.into()),
            IpAddr::V6(v6) => contains(&self.v6, v6.into()),
        }
    }
}

/// Networks never overlap in part: one lies within the other, or they are apart.
fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Box<[(T, T)]> {
    ranges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    ranges.dedup_by(|next, kept| next.1 <= kept.1);
    ranges.into()
}

fn contains<T: Ord + Copy>(ranges: &[(T, T)], address: T) -> bool {
    let behind = ranges.partition_point(|(first, _)| *first <= address);
    behind
        .checked_sub(1)
        .and_then(|place| ranges.get(place))
        .is_some_and(|(_, last)| address <= *last)
}

#[cfg(test)]
mod tests {
    use super::Networks;
    use ipnet::IpNet;
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn network() -> impl Strategy<Value = IpNet> {
        let v4 = (any::<[u8; 2]>(), 8..=32_u8)
            .prop_map(|([a, b], prefix)| format!("10.{}.0.{b}/{prefix}", a % 4));
        let v6 =
            (any::<u8>(), 16..=128_u8).prop_map(|(a, prefix)| format!("2001:db8::{a:x}/{prefix}"));
        prop_oneof![v4, v6].prop_map(|text| text.parse::<IpNet>().unwrap().trunc())
    }

    proptest! {
        /// The search finds what a look at each network finds.
        #[test]
        fn every_network_is_found(
            networks in prop::collection::vec(network(), 0..12), a in 0..6_u8, b in any::<u8>(),
        ) {
            let found = Networks::new(&networks);
            let addresses = [format!("10.{a}.0.{b}"), format!("2001:db8::{b:x}"), format!("::{b:x}")];
            for address in addresses.map(|text| text.parse::<IpAddr>().unwrap()) {
                let expected = networks.iter().any(|network| network.contains(&address));
                prop_assert_eq!(found.contain(address), expected, "{} in {:?}", address, networks);
            }
        }
    }
}
