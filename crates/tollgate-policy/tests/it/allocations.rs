//! Selecting allocates nothing once its buffers have grown.

use tollgate_core::algorithm::Gcra;
use tollgate_core::{LimitParams, Rate};
use tollgate_policy::address::{ClientAddressResolver, ClientAddressSource};
use tollgate_policy::facts::FactsBuffer;
use tollgate_policy::limit::Limit;
use tollgate_policy::match_spec::{Condition, MatchSpec};
use tollgate_policy::policy::{Policy, PolicyOptions, Selection};

/// Every kind of attribute, in a form that must be normalised.
const ATTRIBUTES: [(&str, &str); 7] = [
    ("method", "post"),
    ("host", "API.Example.com"),
    ("path", "/api/./v1/%75sers/42?page=7"),
    ("ip", "[2001:db8::1]:443"),
    ("api_key", "sk_live_0123456789"),
    ("user", "42"),
    ("header.x-plan", "pro"),
];

fn policy() -> Policy {
    let rate = Rate::try_new(100, 60_000_000).unwrap();
    let params = Some(LimitParams::Gcra(Gcra::try_new(rate, None).unwrap()));
    let paths = ["/api/**", "/api/*/users/*", "/api/v1/users/42", "/**/42", "/other"];
    let limits = paths.map(|path| {
        let mut limit = Limit::new(path, &["ip", "api_key", "user", "host"], params);
        limit.tiers = Box::new([("pro".into(), params)]);
        let conditions =
            [("path", path), ("method", "P*"), ("ip", "2001:db8::/32"), ("host", "*.example.com")];
        let conditions = conditions.map(|(attribute, pattern)| Condition {
            attribute: attribute.into(),
            patterns: vec![pattern.into()],
        });
        let not = vec![Condition { attribute: "user".into(), patterns: vec!["admin".into()] }];
        (limit, MatchSpec { conditions: conditions.into(), not: vec![not] })
    });
    let mut options = PolicyOptions::default();
    options.tier_attribute = Some("header.x-plan".into());
    Policy::new(limits.into(), options).unwrap()
}

fn decide(policy: &Policy, buffer: FactsBuffer, selection: &mut Selection) -> FactsBuffer {
    let mut facts = policy.facts(buffer);
    for (name, value) in ATTRIBUTES {
        facts.set(name, value).unwrap();
    }
    policy.select(&facts, 1, selection);
    facts.into_buffer()
}

#[test]
fn a_request_allocates_nothing() {
    let policy = policy();
    let mut selection = Selection::default();
    let mut buffer = FactsBuffer::default();
    let grown = allocation_counter::measure(|| {
        buffer = decide(&policy, std::mem::take(&mut buffer), &mut selection);
    });
    assert!(grown.count_total > 0, "or nothing is counted here");
    assert_eq!(selection.len(), 4);
    let used = allocation_counter::measure(|| {
        for _ in 0..100 {
            buffer = decide(&policy, std::mem::take(&mut buffer), &mut selection);
            assert_eq!(policy.selected(&selection).map(|selected| selected.cost).sum::<u64>(), 4);
        }
    });
    assert_eq!(used.count_total, 0);
}

#[test]
fn finding_the_client_allocates_nothing() {
    let mut client = ClientAddressResolver::default();
    client.set_trusted(["10.0.0.0/8".parse().unwrap()]);
    let peer = "10.0.0.1".parse().unwrap();
    let sources = [
        (
            ClientAddressSource::Header("x-forwarded-for".into()),
            &b"198.51.100.1, [2001:db8::1]:80, 10.0.0.2"[..],
        ),
        (
            ClientAddressSource::Header("forwarded".into()),
            b"for=198.51.100.1, For=\"[2001:db8::\\1]:80\";proto=https",
        ),
        (ClientAddressSource::Hops(1), b"2001:db8::1%eth0"),
    ];
    for (source, line) in sources {
        client.source = source;
        let mut found = peer;
        let used = allocation_counter::measure(|| found = client.resolve(peer, [line]));
        assert_eq!(found, "2001:db8::1".parse::<std::net::IpAddr>().unwrap());
        assert_eq!(used.count_total, 0);
    }
}
