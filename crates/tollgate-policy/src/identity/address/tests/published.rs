//! Published flaws of other projects, each with a test that Tollgate does not have it.

use super::*;

#[test]
fn cve_2025_59152_litestar_trusts_x_forwarded_for() {
    // There, each request with a new header got a new limit.
    for claim in ["198.51.100.1", "198.51.100.2", "127.0.0.1"] {
        assert_eq!(resolve(&x_forwarded_for(), "192.0.2.1", &[claim]), "192.0.2.1");
    }
}

#[test]
fn cve_2020_28483_gin_trusts_x_forwarded_for_by_default() {
    assert_eq!(
        resolve(&ClientAddressResolver::default(), "192.0.2.1", &["127.0.0.1"]),
        "192.0.2.1"
    );
}

#[test]
fn cve_2026_110723_110724_110726_api_gateway_takes_the_leftmost() {
    for claim in ["198.51.100.1", "10.0.0.9", "198.51.100.1, 10.0.0.9, 198.51.100.2"] {
        let line = format!("{claim}, 203.0.113.7, 10.0.0.2");
        assert_eq!(resolve(&x_forwarded_for(), "10.0.0.1", &[&line]), "203.0.113.7");
    }
}

#[test]
fn cve_2024_34451_ghost_counts_logins_by_a_forged_address() {
    // First a proxy that appends to the line, then one that adds a line.
    for claim in ["198.51.100.1", "198.51.100.2"] {
        let appended = format!("{claim}, 203.0.113.7");
        assert_eq!(resolve(&x_forwarded_for(), "10.0.0.1", &[&appended]), "203.0.113.7");
        assert_eq!(resolve(&x_forwarded_for(), "10.0.0.1", &[claim, "203.0.113.7"]), "203.0.113.7");
    }
}

#[test]
fn cve_2026_30827_express_rate_limit_masks_mapped_addresses_into_one_bucket() {
    let (one, other) = (ip("::ffff:192.0.2.1"), ip("::ffff:198.51.100.1"));
    for prefix in [0, 48, 56, 64] {
        assert_eq!(mask(one, prefix), ip("192.0.2.1"));
        assert_eq!(mask(other, prefix), ip("198.51.100.1"));
    }
}

#[test]
fn ghsa_5847_rm3g_23mw_openclaw_counts_mapped_addresses_apart() {
    let client = x_forwarded_for();
    for spelling in
        ["203.0.113.7", "::ffff:203.0.113.7", "::ffff:cb00:7107", "[::FFFF:CB00:7107]:1"]
    {
        assert_eq!(resolve(&client, "10.0.0.1", &[spelling]), "203.0.113.7");
    }
    assert_eq!(resolve(&client, "::ffff:192.0.2.1", &[]), "192.0.2.1");
}

#[test]
fn cve_2024_45410_2021_32813_2026_29054_traefik_loses_forwarded_fields() {
    // There, `Connection: X-Forwarded-For` made a proxy drop the header. Here, a request without
    // the header is counted for the proxy's address; no other header replaces it.
    assert_eq!(resolve(&x_forwarded_for(), "10.0.0.1", &[]), "10.0.0.1");
    assert_eq!(
        resolve(&behind(&["10.0.0.0/8"], ClientAddressSource::Hops(1)), "10.0.0.1", &[]),
        "10.0.0.1"
    );
    assert_eq!(x_forwarded_for().header(), Some("X-Forwarded-For"));
}

#[test]
fn cve_2026_88011_2026_35051_traefik_keeps_aliases_of_fields() {
    let client = x_forwarded_for();
    assert!(client.reads(b"x-forwarded-for") && !client.is_alias(b"X-FORWARDED-FOR"));
    for alias in [
        "X_Forwarded_For",
        "x.forwarded.for",
        "X-Forwarded_For",
        "x-forwarded.for",
        "X~Forwarded!For",
        "x'forwarded|for",
        "x+forwarded-for",
    ] {
        assert!(!client.reads(alias.as_bytes()) && client.is_alias(alias.as_bytes()), "{alias}");
    }
    assert!(!client.is_alias(b"x-forwarded-host") && !client.is_alias(b"forwarded"));
    assert!(!ClientAddressResolver::default().is_alias(b"x_forwarded_for"));
}

#[test]
fn cve_2026_30851_caddy_keeps_what_the_client_sent_beside_its_own() {
    // The client's line comes first and the proxy's second: the proxy's address counts.
    assert_eq!(
        resolve(&x_forwarded_for(), "10.0.0.1", &["127.0.0.1", "203.0.113.7"]),
        "203.0.113.7"
    );
}

#[test]
fn cve_2026_26310_envoy_crashes_on_scoped_addresses() {
    for scoped in ["fe80::1%eth0", "[fe80::1%eth0]", "[fe80::1%25eth0]:443"] {
        assert_eq!(resolve(&x_forwarded_for(), "10.0.0.1", &[scoped]), "fe80::1");
    }
    assert_eq!(resolve(&x_forwarded_for(), "10.0.0.1", &["fe80::1%"]), "10.0.0.1");
}
