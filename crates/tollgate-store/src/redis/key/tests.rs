use super::*;

/// Encodes short values like the policy.
fn key(values: &[&str]) -> Vec<u8> {
    values.iter().flat_map(|value| [&[value.len() as u8 + 1], value.as_bytes()].concat()).collect()
}

fn tag(name: &[u8]) -> &[u8] {
    name.split(|byte| matches!(byte, b'{' | b'}')).nth(1).unwrap()
}

#[test]
fn limits_of_one_client_share_a_tag_and_nothing_else() {
    let namer = KeyNamer::new("tg", b"secret");
    let one = namer.name_at(1, &key(&["alice"]), 6);
    let two = namer.name_at(2, &key(&["alice", "/x"]), 6);
    assert_eq!(tag(&one), tag(&two));
    assert_ne!(one, two);
    assert_ne!(tag(&one), tag(&namer.name_at(1, &key(&["bob"]), 6)));
    assert_eq!(one.len(), 33);
    // State in Redis outlives a release: the same limit must find it under the same name.
    assert_eq!(String::from_utf8_lossy(&one), "tg:{miES7I}:IF4dm4IjnO6mVEgzUmRhW");
}

#[test]
fn nobody_without_the_secret_knows_where_a_key_is() {
    let other = KeyNamer::new("tg", b"other").name_at(1, &key(&["alice"]), 6);
    assert_ne!(tag(&KeyNamer::new("tg", b"secret").name_at(1, &key(&["alice"]), 6)), tag(&other));
}

#[test]
fn no_two_tuples_meet() {
    let namer = KeyNamer::new("tg", b"");
    let tuples: [&[&str]; 6] = [&[], &[""], &["ab"], &["a", "b"], &["", "ab"], &["a", "", "b"]];
    let names: std::collections::BTreeSet<_> =
        tuples.iter().map(|values| namer.name_at(7, &key(values), 6)).collect();
    assert_eq!(names.len(), tuples.len());
}

#[test]
fn any_bytes_have_a_first_value() {
    for bytes in [&[][..], &[0], &[0x80], &[0xff; 9], &[5, 1], &[0xff, 0xff, 0xff, 0xff, 0x0f, 1]] {
        assert!(bytes.starts_with(first_value(bytes)));
    }
    assert_eq!(first_value(&key(&["ab", "c"])), b"\x03ab");
}

#[test]
fn there_is_a_mark_for_every_slot() {
    let namer = KeyNamer::new("tg", b"secret");
    let slots: std::collections::BTreeSet<_> =
        namer.marker_keys().map(|name| crate::redis::slot_of(&name)).collect();
    assert_eq!(slots.len(), 16_384);
    assert_eq!(namer.marker_keys().next().unwrap(), b"tg:{0}:m");
}
