use super::{KeySecrets, is_hash};
use tollgate::MemoryStore;
use tollgate::engine::{Gate, GateSetup};
use tollgate_policy::compile;
use tollgate_policy::policy::Selection;

/// One key per limit, as operators see it.
fn shown(secrets: &KeySecrets, attributes: &[(&str, &str)]) -> Vec<String> {
    let policy = "
identity: {user: header.x-user, session: cookie.sid}
limits:
  - {name: hidden, key: [user, ip], rate: 5/min}
  - {name: shown, key: [user, ip], rate: 5/min, show_keys: true}
  - {name: secret, key: [api_key, session, user], rate: 5/min, show_keys: true}
  - {name: shared, rate: 5/min, show_keys: true}
";
    let compiled = compile(policy.as_bytes()).unwrap();
    let gate = Gate::new(GateSetup::of(&compiled), MemoryStore::default()).unwrap();
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    attributes.iter().for_each(|(name, value)| facts.set(name, value).unwrap());
    let mut selection = Selection::default();
    let mut shown = Vec::new();
    for limit in 0..rules.policy().limits().len() {
        rules.policy().select_one(limit, &facts, 1, &mut selection);
        let selected = rules.policy().selected(&selection);
        shown.extend(
            selected.map(|one| secrets.show(&rules, one.limit, one.key_index, one.key).to_string()),
        );
    }
    shown
}

#[test]
fn keys_are_clear_only_where_the_limit_shows_them_and_secrets_never() {
    let secrets = KeySecrets::default();
    let attributes =
        [("user", "42"), ("ip", "203.0.113.9"), ("api_key", "k-1"), ("session", "s-1")];
    let [hidden, clear, secret, shared] =
        <[String; 4]>::try_from(shown(&secrets, &attributes)).unwrap();
    assert_eq!(clear, "user=42 ip=203.0.113.9");
    let (user, ip) = (secrets.hash("user", b"42"), secrets.hash("ip", b"203.0.113.9"));
    assert_eq!(hidden, format!("user={user} ip={ip}"));
    assert!(is_hash(&user), "{user}");
    assert!(secret.ends_with("user=42") && !secret.contains("k-1") && !secret.contains("s-1"));
    assert_eq!(secret.matches('~').count(), 2, "{secret}");
    assert_eq!(shared, "");
}

#[test]
fn a_clear_value_that_looks_like_a_hash_is_hashed() {
    let secrets = KeySecrets::default();
    let shown = shown(&secrets, &[("user", "~0123456789abcdef"), ("ip", "::1")]);
    assert!(!shown.concat().contains("~0123456789abcdef"), "{shown:?}");
}

#[test]
fn one_secret_gives_one_hash_on_every_node_and_others_differ() {
    let [a, b, c] = <[KeySecrets; 3]>::default();
    a.configure(Some("one"));
    b.configure(Some("one"));
    assert_eq!(a.hash("user", b"42"), b.hash("user", b"42"));
    assert_ne!(a.hash("user", b"42"), c.hash("user", b"42"));
    assert_ne!(a.hash("user", b"42"), a.hash("ip", b"42"));
    assert_ne!(a.hash("user", b"42"), a.hash("user", b"43"));
    b.configure(None);
    assert_ne!(a.hash("user", b"42"), b.hash("user", b"42"));
}

#[test]
fn the_hash_is_that_of_the_standard() {
    // HMAC-SHA-256 of `user`, a zero byte and `42`, by Python. Its key is the SHA-256 of the
    // secret.
    let secrets = KeySecrets::default();
    secrets.configure(Some("one"));
    assert_eq!(secrets.hash("user", b"42"), "~bf76c31766627857");
}
