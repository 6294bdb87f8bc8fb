//! The client address, found through trusted proxies.
//!
//! Only the peer of the connection is certain. If the peer is a trusted proxy, the configured
//! header is read from the right, since each proxy appends the address it saw. Trusted hops are
//! skipped, and the first other address is the client. Items to its left are the client's own
//! claims and are ignored.
//!
//! ```
//! use tollgate_policy::address::{ClientAddressResolver, ClientAddressSource};
//!
//! let mut client = ClientAddressResolver::default();
//! client.set_trusted(["10.0.0.0/8".parse().unwrap()]);
//! client.source = ClientAddressSource::Header("x-forwarded-for".into());
//!
//! // The first item is the client's own claim.
//! let lines = [&b"198.51.100.9"[..], b"203.0.113.7, 10.0.0.2"];
//! let proxy = "10.0.0.1".parse().unwrap();
//! assert_eq!(client.resolve(proxy, lines), "203.0.113.7".parse::<std::net::IpAddr>().unwrap());
//!
//! let stranger = "192.0.2.1".parse().unwrap();
//! assert_eq!(client.resolve(stranger, lines), stranger);
//! ```

mod canonical;
mod forwarded;
mod list;
mod parse;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use ipnet::IpNet;

pub use canonical::{mask, unmap, unmap_net};
pub use parse::{InvalidAddress, parse};

/// Finds the client's address. The default trusts no proxy: the peer is the client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientAddressResolver {
    /// The proxies that may report a client's address, IPv4 networks unmapped.
    trusted: Vec<IpNet>,
    /// The header in which the proxies report it.
    pub source: ClientAddressSource,
    /// The prefix length of an IPv6 address that identifies one client.
    pub ipv6_prefix: u8,
}

/// The one source of a client's address. There is no fallback: a proxy that sets one header usually
/// forwards the others as the client sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientAddressSource {
    /// The peer of the connection.
    #[default]
    Peer,
    /// A header with one address, such as `cf-connecting-ip`, or with a list, such as
    /// `x-forwarded-for`. The name `forwarded` is parsed by RFC 7239.
    Header(Box<str>),
    /// The n-th item of `x-forwarded-for` from the right; the last item is 1.
    Hops(u32),
}

const FORWARDED: &str = "forwarded";
const X_FORWARDED_FOR: &str = "x-forwarded-for";

impl Default for ClientAddressResolver {
    fn default() -> Self {
        Self { trusted: Vec::new(), source: ClientAddressSource::Peer, ipv6_prefix: 64 }
    }
}

impl ClientAddressResolver {
    /// Sets the proxies that may report a client's address. IPv4 networks may be
    /// [mapped](unmap_net).
    pub fn set_trusted(&mut self, networks: impl IntoIterator<Item = IpNet>) {
        self.trusted = networks.into_iter().map(unmap_net).collect();
    }

    /// The proxies that may report a client's address.
    pub fn trusted(&self) -> &[IpNet] {
        &self.trusted
    }

    /// Returns the client's address, from the connection's peer and the values of all
    /// [`header`](Self::header) lines in the order sent.
    ///
    /// An item that is not an address, such as `unknown`, ends the walk at the last good hop. If
    /// all items are trusted, the leftmost is the client. Empty items are skipped.
    pub fn resolve<'h, L>(&self, peer: IpAddr, lines: L) -> IpAddr
    where
        L: IntoIterator<Item = &'h [u8]>,
        L::IntoIter: DoubleEndedIterator,
    {
        self.resolve_hop(peer, lines).0
    }

    /// [`resolve`](Self::resolve), which also returns the position of the item with the address,
    /// counted from the right from 1. Zero is the peer.
    pub fn resolve_hop<'h, L>(&self, peer: IpAddr, lines: L) -> (IpAddr, u32)
    where
        L: IntoIterator<Item = &'h [u8]>,
        L::IntoIter: DoubleEndedIterator,
    {
        let peer = unmap(peer);
        if !self.is_trusted(peer) {
            return (peer, 0);
        }
        let lines = lines.into_iter().rev();
        match &self.source {
            ClientAddressSource::Peer => (peer, 0),
            ClientAddressSource::Hops(hops) => {
                let item = nth_from_right(*hops, lines.flat_map(list::from_right));
                item.map_or((peer, 0), |address| (address, *hops))
            }
            ClientAddressSource::Header(name) if name.eq_ignore_ascii_case(FORWARDED) => {
                self.first_untrusted(peer, lines.flat_map(forwarded::from_right))
            }
            ClientAddressSource::Header(_) => {
                self.first_untrusted(peer, lines.flat_map(list::from_right))
            }
        }
    }

    /// The name of the header that [`resolve`](Self::resolve) reads.
    pub fn header(&self) -> Option<&str> {
        match &self.source {
            ClientAddressSource::Peer => None,
            ClientAddressSource::Header(name) => Some(name),
            ClientAddressSource::Hops(_) => Some(X_FORWARDED_FOR),
        }
    }

    /// Whether this is the header that is read. Spellings that some servers treat as equal, such as
    /// `X_Forwarded_For`, are other headers here.
    pub fn reads(&self, name: &[u8]) -> bool {
        self.header().is_some_and(|field| field.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether an upstream might treat this header as the one that is read here. Front ends drop
    /// such headers.
    pub fn is_alias(&self, name: &[u8]) -> bool {
        let folded = |name: &[u8]| name.iter().copied().map(fold_name_byte).collect::<Vec<_>>();
        self.header().is_some_and(|field| folded(field.as_bytes()) == folded(name))
            && !self.reads(name)
    }

    /// Whether the address belongs to a trusted proxy.
    #[inline]
    pub fn is_trusted(&self, address: IpAddr) -> bool {
        let address = unmap(address);
        self.trusted.iter().any(|net| net.contains(&address))
    }

    /// The form of an address in keys: unmapped and masked.
    pub fn key(&self, address: IpAddr) -> IpAddr {
        mask(address, self.ipv6_prefix)
    }

    /// Returns the first untrusted address from the right, or the last trusted one before an
    /// invalid item.
    fn first_untrusted(
        &self,
        peer: IpAddr,
        items: impl Iterator<Item = Option<IpAddr>>,
    ) -> (IpAddr, u32) {
        let mut client = (peer, 0);
        for (address, hop) in items.zip(1..) {
            let Some(address) = address else { break };
            client = (address, hop);
            if !self.is_trusted(address) {
                break;
            }
        }
        client
    }
}

/// Returns the n-th item from the right, if it is an address.
fn nth_from_right(hops: u32, mut items: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
    let before = usize::try_from(hops.checked_sub(1)?).ok()?;
    items.nth(before)?
}

/// Folds one byte of a header name as the least strict servers do. CGI reads `X_User` as `X-User`;
/// lighttpd reads every byte that is not a letter or a digit as `_`.
pub fn fold_name_byte(byte: u8) -> u8 {
    if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' }
}

/// Whether some servers may take this header name for another one. Such names are rare.
#[inline]
pub fn is_odd_name(name: &[u8]) -> bool {
    // A lookup table without early exit, since every header of every request is checked.
    const ODD: [bool; 256] = {
        let mut odd = [true; 256];
        let mut byte = 0;
        while byte < 128 {
            odd[byte as usize] = !(byte as u8).is_ascii_alphanumeric() && byte as u8 != b'-';
            byte += 1;
        }
        odd
    };
    name.iter().fold(false, |is_odd, byte| is_odd | ODD[usize::from(*byte)])
}
