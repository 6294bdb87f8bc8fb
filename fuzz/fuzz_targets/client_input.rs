//! Addresses, forwarding headers and paths from a hostile client. Nothing panics. An untrusted peer
//! is its own client, the last hop of a trusted proxy counts, and normalising a path twice changes
//! nothing. Lines of the input are header lines.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use tollgate_policy::address::{ClientAddressResolver, ClientAddressSource, parse, unmap};
use tollgate_policy::path::{ambiguity, normalise, readings};

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

fuzz_target!(|input: &[u8]| {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let mut client = ClientAddressResolver::default();
    client.set_trusted([PROXY.into()]);
    for (source, added) in [
        (ClientAddressSource::Header("x-forwarded-for".into()), &b", 203.0.113.7"[..]),
        (ClientAddressSource::Header("forwarded".into()), b", for=203.0.113.7"),
        (ClientAddressSource::Hops(1), b", 203.0.113.7"),
    ] {
        client.source = source;
        assert_eq!(client.resolve(CLIENT, lines.iter().copied()), CLIENT);
        let found = client.resolve(PROXY, lines.iter().copied());
        assert_eq!(found, unmap(found));
        let appended = [input, added].concat();
        assert_eq!(client.resolve(PROXY, appended.split(|byte| *byte == b'\n')), CLIENT);
    }
    if let Ok(text) = str::from_utf8(input) {
        if let Ok(address) = parse(text) {
            assert_eq!(parse(&address.to_string()), Ok(address));
        }
        let once = normalise(text);
        assert_eq!(normalise(&once), once);
        // The normal form of an unambiguous path is unambiguous, and its first reading.
        if ambiguity(text).is_none() {
            assert_eq!(ambiguity(&once), None);
            assert!(readings(text).is_ok_and(|all| all.first().is_none_or(|first| *first == once)));
        }
    }
});
