use super::*;
use crate::policy::{Policy, PolicyOptions};
use crate::{compile, hash};

const LIMITS: &str =
    "limits: [{name: a, key: [user], rate: 1/s, tiers: {pro: 2/s, free: unlimited}}]";

fn compiled(tiers: &str) -> Compiled {
    let text = format!("tiers: {tiers}\n{LIMITS}");
    compile(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"))
}

fn read(file: &str, tiers: &str) -> Result<TierMap, Vec<crate::Diagnostic>> {
    TierMap::read(file.as_bytes(), &TierRules::of(&compiled(tiers)))
}

/// Returns the map of a policy with inline tiers.
fn inline(by: &str, map: &str) -> TierMap {
    match compiled(&format!("{{by: {by}, map: {map}}}")).settings.tiers.source {
        Some(TierSource::Map(map)) => map,
        other => panic!("{other:?}"),
    }
}

/// Returns the tier of a request with this value, looked up through its facts.
fn tier_of<'m>(map: &'m TierMap, value: &str) -> Option<&'m str> {
    let mut options = PolicyOptions::default();
    options.attributes.push(map.by().to_owned());
    let policy = Policy::new(Vec::new(), options).unwrap();
    let mut facts = policy.facts(Default::default());
    facts.set(map.by(), value).unwrap();
    facts.get(map.by()).and_then(|value| map.tier(&value))
}

#[test]
fn values_are_text_whether_quoted_or_not() {
    let tiers = read("by: user\nmap:\n  42: pro\n  \"43\": free\n", "{file: t.yaml}").unwrap();
    assert_eq!(
        (tiers.tier("42"), tiers.tier("43"), tiers.tier("4")),
        (Some("pro"), Some("free"), None)
    );
    let empty = read("{by: api_key, map: {}}", "{file: t.yaml}").unwrap();
    assert_eq!((empty.by(), empty.is_empty()), ("api_key", true));
}

/// An API key is hashed before the lookup, so the map hashes its API keys in clear.
#[test]
fn api_keys_match_in_clear_and_by_their_hash() {
    let map = format!(
        "{{key-1: pro, {}: pro, {}: free}}",
        hash("key-2"),
        hash("key-3").to_uppercase().replace("SHA256", "sha256")
    );
    let map = inline("api_key", &map);
    let found = ["key-1", "key-2", "key-3", "key-4"].map(|key| tier_of(&map, key));
    assert_eq!(found, [Some("pro"), Some("pro"), Some("free"), None]);
    assert_eq!(tier_of(&map, &hash("key-1")), None, "a hash is not a key");
    assert_eq!(tier_of(&map, &hash("key-2")), None, "a hash is not a key");
    assert!(!format!("{map:?}").contains("key-1"), "{map:?}");
}

/// 32 hexadecimal digits are a common form of an API key, and not a hash.
#[test]
fn a_key_that_looks_like_our_digest_is_a_key() {
    let key = &hash("key-1")[HASH_PREFIX.len()..][..API_KEY_DIGITS];
    let map = inline("api_key", &format!("{{{key}: pro}}"));
    assert_eq!((tier_of(&map, key), tier_of(&map, "key-1")), (Some("pro"), None));
}

#[test]
fn other_values_may_be_hashed_too() {
    let map = inline("user", &format!("{{ann: pro, {}: free}}", hash("bob")));
    let found = ["ann", "bob", "eve", &hash("bob")].map(|user| tier_of(&map, user));
    assert_eq!(found, [Some("pro"), Some("free"), None, None]);
}

/// Maps contain values as people write them; lookups use the canonical form.
#[test]
fn values_have_the_form_that_requests_have() {
    for (by, written, sent) in [
        ("ip", "'2001:db8::1'", "2001:db8::2"),
        ("ip", "'::ffff:192.0.2.7'", "192.0.2.7"),
        ("host", "Example.COM", "example.com"),
        ("method", "get", "GET"),
        ("path", "/a/./b", "/a/b"),
        ("header.x-plan", "A", "A"),
    ] {
        let map = inline(by, &format!("{{{written}: pro}}"));
        assert_eq!(tier_of(&map, sent), Some("pro"), "{by}: {written}");
    }
}

#[test]
fn a_file_holds_the_map_alone_or_says_by_what() {
    let alone = "ann: pro\nmap: free\nby: pro\n";
    let map = read(alone, "{by: user, file: t.yaml}").unwrap();
    assert_eq!(
        ["ann", "map", "by"].map(|user| map.tier(user)),
        [Some("pro"), Some("free"), Some("pro")]
    );
    for tiers in ["{by: user, file: t.yaml}", "{file: t.yaml}", "{file: {path: t.yaml}}"] {
        let map = read("{by: user, map: {ann: pro}}", tiers).unwrap();
        assert_eq!((map.by(), map.tier("ann")), ("user", Some("pro")), "{tiers}");
    }
    let map = read("{map: {ann: pro}}", "{by: user, file: t.yaml}").unwrap();
    assert_eq!((map.by(), map.tier("ann")), ("user", Some("pro")));
}

#[test]
fn every_spelling_says_the_same() {
    let redis = |tiers: &str| {
        let text = format!("store: {{redis: {{url: 'redis://h'}}}}\ntiers: {tiers}\n{LIMITS}");
        compile(text.as_bytes()).unwrap().settings.tiers.source
    };
    let expected = Some(TierSource::Redis { hash: "plans".into(), by: "user".into() });
    for tiers in [
        "{by: user, redis: plans}",
        "{by: user, redis: {hash: plans}}",
        "{redis: {hash: plans, by: user}}",
    ] {
        assert_eq!(redis(tiers), expected, "{tiers}");
    }
    for (tiers, by) in [
        ("{file: t.yaml}", None),
        ("{file: {path: t.yaml}}", None),
        ("{by: user, file: t.yaml}", Some("user")),
    ] {
        let expected = TierSource::File { path: "t.yaml".into(), by: by.map(Into::into) };
        assert_eq!(compiled(tiers).settings.tiers.source, Some(expected), "{tiers}");
    }
}

#[test]
fn mistakes_are_found_at_their_place() {
    let error = |text: &str, tiers: &str| {
        let error = read(text, tiers).unwrap_err().remove(0);
        (error.line, error.code)
    };
    let file = |text: &str| error(text, "{file: t.yaml}");
    assert_eq!(file("map: {a: pro}"), (1, "TG006"));
    assert_eq!(file("a: pro"), (1, "TG002"));
    assert_eq!(file("by: user\nmaps: {a: pro}"), (2, "TG002"));
    assert_eq!(file("by: user\nmap: {a: pro, a: free}"), (2, "TG003"));
    assert_eq!(file("by: user\nmap: [a]"), (2, "TG004"));
    assert_eq!(file("[a]"), (1, "TG004"));
    assert_eq!(file("by: user\nmap: {a: pro,\n  b: gold}"), (3, "TG080"));
    assert_eq!(file("by: api_key\nmap: {'sha256:': pro}"), (2, "TG081"));
    assert_eq!(file("by: ip\nmap: {here: pro}"), (2, "TG015"));
    let by_user = |text: &str| error(text, "{by: user, file: t.yaml}");
    assert_eq!(by_user("a: pro\nb: gold"), (2, "TG080"));
    assert_eq!(by_user("a: {b: pro}"), (1, "TG004"));
    assert_eq!(by_user("by: ip\nmap: {}"), (1, "TG043"));
    assert_eq!(by_user(""), (1, "TG004"), "a file that was cut short takes no tier away");
}

/// If the policy has `by`, a file with `map` misspelt is not a bare map.
#[test]
fn a_misspelt_map_is_named() {
    let policy = b"{tiers: {by: api_key, file: tiers.yaml}, limits: [{name: a, rate: 1/s, tiers: {pro: 9/s}}]}";
    let rules = TierRules::of(&crate::compile(policy).unwrap());
    let errors = TierMap::read(b"{by: api_key, mapp: {key-1: pro}}", &rules).unwrap_err();
    let text: String = errors.iter().map(|error| error.render("tiers.yaml").to_string()).collect();
    assert!(text.contains("unknown field `mapp`, did you mean `map`?"), "{text}");
    assert!(!text.contains("no limit has the tier"), "{text}");
}
