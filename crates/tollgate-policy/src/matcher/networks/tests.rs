use super::Networks;
use ipnet::IpNet;
use proptest::prelude::*;
use std::net::IpAddr;

fn network() -> impl Strategy<Value = IpNet> {
    let v4 = (any::<[u8; 2]>(), 8..=32_u8)
        .prop_map(|([a, b], prefix)| format!("10.{}.0.{b}/{prefix}", a % 4));
    let v6 = (any::<u8>(), 16..=128_u8).prop_map(|(a, prefix)| format!("2001:db8::{a:x}/{prefix}"));
    prop_oneof![v4, v6].prop_map(|text| text.parse::<IpNet>().unwrap().trunc())
}

proptest! {
    /// The search agrees with a test of each network.
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
