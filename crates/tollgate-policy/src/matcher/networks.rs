//! A set of many networks, searched by binary search.

#[cfg(test)]
mod tests;

use ipnet::IpNet;
use std::net::IpAddr;

/// Sorted, disjoint address ranges, so that thousands of networks take a binary search.
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

/// Removes ranges inside others. Networks never overlap partially: one contains the other, or they
/// are disjoint.
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
