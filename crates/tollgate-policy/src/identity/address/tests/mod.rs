mod published;

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn behind(trusted: &[&str], source: ClientAddressSource) -> ClientAddressResolver {
    let mut client = ClientAddressResolver { source, ..ClientAddressResolver::default() };
    client.set_trusted(trusted.iter().map(|net| net.parse().unwrap()));
    client
}

fn x_forwarded_for() -> ClientAddressResolver {
    behind(
        &["10.0.0.0/8", "2001:db8:ffff::/48"],
        ClientAddressSource::Header("X-Forwarded-For".into()),
    )
}

fn forwarded() -> ClientAddressResolver {
    behind(&["10.0.0.0/8"], ClientAddressSource::Header("forwarded".into()))
}

fn resolve(client: &ClientAddressResolver, peer: &str, lines: &[&str]) -> String {
    client.resolve(ip(peer), lines.iter().map(|line| line.as_bytes())).to_string()
}

#[test]
fn the_first_untrusted_address_from_the_right_is_the_client() {
    let cases: &[(&[&str], &str)] = &[
        (&["203.0.113.7"], "203.0.113.7"),
        (&["198.51.100.1, 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        // All header lines count, in order.
        (&["198.51.100.1", "203.0.113.7", "10.0.0.2,10.0.0.3"], "203.0.113.7"),
        (&["203.0.113.7:4711 ,\t10.0.0.2:80"], "203.0.113.7"),
        (&["[2001:db8::1]:4711"], "2001:db8::1"),
        (&["2001:db8::1%eth0, 2001:db8:ffff::9"], "2001:db8::1"),
        (&["::ffff:203.0.113.7, ::ffff:a00:2"], "203.0.113.7"),
        // An invalid item ends the walk at the last good hop.
        (&["203.0.113.7, nonsense, 10.0.0.2"], "10.0.0.2"),
        (&["203.0.113.7, unknown"], "10.0.0.1"),
        (&["203.0.113.7, 10.0.0.2, \u{e9}, 10.0.0.3"], "10.0.0.3"),
        // With trusted items only, the leftmost is the client; with no items, the peer.
        (&["10.0.0.4, 10.0.0.3", "10.0.0.2"], "10.0.0.4"),
        (&[], "10.0.0.1"),
        (&["", " , ,"], "10.0.0.1"),
        (&["203.0.113.7,,10.0.0.2,"], "203.0.113.7"),
    ];
    for (lines, expected) in cases {
        assert_eq!(resolve(&x_forwarded_for(), "10.0.0.1", lines), *expected, "{lines:?}");
    }
}

#[test]
fn an_untrusted_peer_is_the_client_whatever_it_sends() {
    let lines = ["203.0.113.7", "10.0.0.2"];
    assert_eq!(resolve(&x_forwarded_for(), "192.0.2.1", &lines), "192.0.2.1");
    assert_eq!(resolve(&ClientAddressResolver::default(), "10.0.0.1", &lines), "10.0.0.1");
    let hops = behind(&["10.0.0.0/8"], ClientAddressSource::Hops(1));
    assert_eq!(resolve(&hops, "192.0.2.1", &lines), "192.0.2.1");
    assert_eq!(resolve(&forwarded(), "192.0.2.1", &["for=203.0.113.7"]), "192.0.2.1");
}

#[test]
fn a_peer_on_a_dual_stack_socket_is_trusted_by_its_ipv4_address() {
    assert_eq!(resolve(&x_forwarded_for(), "::ffff:10.0.0.1", &["203.0.113.7"]), "203.0.113.7");
    let mapped = behind(&["::ffff:10.0.0.0/104"], x_forwarded_for().source);
    assert_eq!(resolve(&mapped, "10.0.0.1", &["203.0.113.7"]), "203.0.113.7");
    assert_eq!(resolve(&mapped, "11.0.0.1", &["203.0.113.7"]), "11.0.0.1");
}

#[test]
fn hops_count_from_the_right_and_too_few_are_the_peer() {
    let hops = |n| behind(&["10.0.0.0/8"], ClientAddressSource::Hops(n));
    let lines = ["198.51.100.1", "203.0.113.7, 10.0.0.2"];
    assert_eq!(resolve(&hops(1), "10.0.0.1", &lines), "10.0.0.2");
    assert_eq!(resolve(&hops(2), "10.0.0.1", &lines), "203.0.113.7");
    assert_eq!(resolve(&hops(3), "10.0.0.1", &lines), "198.51.100.1");
    assert_eq!(resolve(&hops(4), "10.0.0.1", &lines), "10.0.0.1");
    assert_eq!(resolve(&hops(0), "10.0.0.1", &lines), "10.0.0.1");
    assert_eq!(resolve(&hops(2), "10.0.0.1", &["nonsense, 10.0.0.2"]), "10.0.0.1");
    assert_eq!(hops(2).header(), Some("x-forwarded-for"));
}

#[test]
fn forwarded_is_read_as_rfc_7239_says() {
    let cases: &[(&[&str], &str)] = &[
        (&["for=203.0.113.7"], "203.0.113.7"),
        (&["For=\"[2001:db8::1]:47011\";proto=https, for=10.0.0.7"], "2001:db8::1"),
        (&["FOR=\"203.0.113.7:_gazonk\"; by=10.0.0.1 ;host=\"a,b;for=1.1.1.1\""], "203.0.113.7"),
        (&["for=\"203.0.1\\13.7\""], "203.0.113.7"),
        (&["for=198.51.100.1", "for=203.0.113.7,for=10.0.0.2"], "203.0.113.7"),
        // Names and obfuscated nodes are not addresses.
        (&["for=203.0.113.7, for=unknown, for=10.0.0.2"], "10.0.0.2"),
        (&["for=203.0.113.7, for=_hidden"], "10.0.0.1"),
        (&["for=203.0.113.7, proto=https"], "10.0.0.1"),
        (&["for=203.0.113.7;for=198.51.100.1"], "10.0.0.1"),
        (&["for=\"\", for=10.0.0.2"], "10.0.0.2"),
        (&["for"], "10.0.0.1"),
        (&["for=\"203.0.113.7\\\""], "10.0.0.1"),
        // A quote that a client leaves open on the left does not affect items that the proxy adds
        // on the right.
        (&["for=\", for=203.0.113.7"], "203.0.113.7"),
        (&["x=\"a\\\", for=\"[2001:db8::1]:1\""], "2001:db8::1"),
    ];
    for (lines, expected) in cases {
        assert_eq!(resolve(&forwarded(), "10.0.0.1", lines), *expected, "{lines:?}");
        let by_name = ClientAddressResolver {
            source: ClientAddressSource::Header("Forwarded".into()),
            ..forwarded()
        };
        assert_eq!(resolve(&by_name, "10.0.0.1", lines), *expected, "{lines:?}");
    }
    let long = format!("for=\"{}203.0.113.7\"", "\\0".repeat(200));
    assert_eq!(resolve(&forwarded(), "10.0.0.1", &[&long]), "10.0.0.1");
}

#[test]
fn text_that_is_no_address_is_refused() {
    let bad = [
        "",
        " ",
        "1.2.3",
        "1.2.3.4.5",
        "01.2.3.4",
        "1.2.3.4:",
        "1.2.3.4:123456",
        "1.2.3.4:x",
        "1.2.3.4%eth0",
        "[1.2.3.4]",
        "[::1",
        "::1]",
        "[::1]x",
        "[::1]:",
        "::1%",
        "fe80::1%eth0]",
        "::g",
        "1.2.3.4/8",
        "_hidden",
        "unknown",
        "example.com",
        "[::1]]",
        "1.2.3.4 ",
        "::ffff:1.2.3.256",
        "[::1%]:80",
    ];
    for text in bad {
        assert_eq!(parse(text), Err(InvalidAddress), "{text}");
    }
}

#[test]
fn masks_have_every_length() {
    let all: IpAddr = ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    for (prefix, expected) in
        [(0, "::"), (1, "8000::"), (48, "ffff:ffff:ffff::"), (56, "ffff:ffff:ffff:ff00::")]
    {
        assert_eq!(mask(all, prefix), ip(expected));
    }
    assert_eq!(mask(all, 128), all);
    assert_eq!(mask(all, 200), all);
    assert_eq!(mask(ip("1.2.3.4"), 0), ip("1.2.3.4"));
    assert_eq!(ClientAddressResolver::default().key(ip("2001:db8::1")), ip("2001:db8::"));
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
}

/// Generates items and garbage similar to the headers that this module reads.
fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any_address().prop_map(|address| address.to_string().into_bytes()),
        "(for=|\"|\\\\|,|;|\\[|\\]|:|%|10.0.0.1|_x|unknown| ){1,8}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_source() -> impl Strategy<Value = ClientAddressSource> {
    prop_oneof![
        Just(ClientAddressSource::Peer),
        Just(ClientAddressSource::Header("forwarded".into())),
        Just(ClientAddressSource::Header("x-forwarded-for".into())),
        (0_u32..5).prop_map(ClientAddressSource::Hops),
    ]
}

/// All usual spellings of an address.
fn spellings(address: IpAddr) -> Vec<String> {
    match address {
        IpAddr::V4(v4) => {
            let mapped = v4.to_ipv6_mapped();
            let [a, b, c, d] = v4.octets();
            let hexadecimal = format!("::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}");
            vec![
                v4.to_string(),
                format!("{v4}:80"),
                mapped.to_string(),
                format!("[{mapped}]:443"),
                hexadecimal.to_uppercase(),
                format!("0:0:0:0:0:{}", &hexadecimal[2..]),
                format!("[{hexadecimal}%1]"),
            ]
        }
        IpAddr::V6(v6) => {
            let full = v6.segments().map(|segment| format!("{segment:04X}")).join(":");
            vec![
                v6.to_string(),
                full.clone(),
                format!("[{full}]"),
                format!("[{v6}]:65535"),
                format!("{v6}%eth0"),
                format!("[{v6}%25en0]:1"),
            ]
        }
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn resolving_never_panics_and_never_leaves_a_mapped_address(
        source in any_source(), peer in any_address(), lines in prop::collection::vec(any_line(), 0..4),
    ) {
        let client = behind(&["0.0.0.0/0", "::/0"], source);
        let found = client.resolve(peer, lines.iter().map(Vec::as_slice));
        prop_assert_eq!(found, unmap(found));
    }

    #[test]
    fn an_untrusted_peer_cannot_influence_the_result(
        source in any_source(), peer in any_address(), lines in prop::collection::vec(any_line(), 0..4),
    ) {
        let client = behind(&["10.0.0.0/8"], source);
        prop_assume!(!client.is_trusted(peer));
        prop_assert_eq!(client.resolve(peer, lines.iter().map(Vec::as_slice)), unmap(peer));
    }

    #[test]
    fn what_a_client_puts_in_front_changes_nothing(lines in prop::collection::vec(any_line(), 0..4), own in any_line()) {
        // The trusted proxy appends the client's address to the client's last line, or adds a line.
        for (client, item) in [(x_forwarded_for(), "203.0.113.7"), (forwarded(), "for=203.0.113.7")] {
            let appended = [own.clone(), format!(", {item}").into_bytes()].concat();
            let lines = lines.iter().map(Vec::as_slice);
            let same_line = lines.clone().chain([appended.as_slice()]).collect::<Vec<_>>();
            prop_assert_eq!(client.resolve(ip("10.0.0.1"), same_line), ip("203.0.113.7"));
            let own_line = lines.chain([own.as_slice(), item.as_bytes()]).collect::<Vec<_>>();
            prop_assert_eq!(client.resolve(ip("10.0.0.1"), own_line), ip("203.0.113.7"));
        }
    }

    #[test]
    fn all_spellings_of_an_address_are_one_key(address in any_address(), prefix in 0_u8..=128) {
        let address = unmap(address);
        for spelling in spellings(address) {
            let parsed = parse(&spelling);
            prop_assert_eq!(parsed, Ok(address), "{}", spelling);
            prop_assert_eq!(parsed.map(|parsed| mask(parsed, prefix)), Ok(mask(address, prefix)));
        }
    }
}

#[test]
fn the_hop_that_names_the_client_is_counted_from_the_right() {
    let hop = |client: &ClientAddressResolver, peer: &str, line: &str| {
        client.resolve_hop(ip(peer), [line.as_bytes()])
    };
    let list = "198.51.100.1, 203.0.113.7, 10.0.0.2";
    assert_eq!(hop(&x_forwarded_for(), "10.0.0.1", list), (ip("203.0.113.7"), 2));
    assert_eq!(hop(&x_forwarded_for(), "192.0.2.1", list), (ip("192.0.2.1"), 0));
    assert_eq!(hop(&x_forwarded_for(), "10.0.0.1", "unknown"), (ip("10.0.0.1"), 0));
    let third = behind(&["10.0.0.0/8"], ClientAddressSource::Hops(3));
    assert_eq!(hop(&third, "10.0.0.1", list), (ip("198.51.100.1"), 3));
}
