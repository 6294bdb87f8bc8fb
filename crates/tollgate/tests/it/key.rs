//! Keys: different values have different counts, and equal values share one.

use proptest::prelude::*;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tollgate::{Key, Limiter, Quota};

fn bytes(key: impl Key) -> Vec<u8> {
    key.key_bytes().as_ref().to_vec()
}

/// Whether the bytes differ exactly when the values do.
fn is_injective<T: Key + PartialEq>(one: &T, other: &T) -> bool {
    (bytes(one) == bytes(other)) == (one == other)
}

/// Bytes that look like encoded keys: marks, kinds, lengths.
fn confusing() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(0xFF), 0..8_u8, Just(b'a')], 0..6)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab\0\u{1}\u{5}]{0,4}", "a{120,140}"]
}

/// Keys of all types as bytes, including nested tuples.
fn any_key() -> impl Strategy<Value = (String, Vec<u8>)> {
    let shown = |kind: &str, value: &dyn std::fmt::Debug| format!("{kind} {value:?}");
    prop_oneof![
        // Text and bytes are one type.
        text().prop_map(move |key| (shown("bytes", &key.as_bytes()), bytes(&key))),
        confusing().prop_map(move |key| (shown("bytes", &key.as_slice()), bytes(&key))),
        any::<i128>().prop_map(move |key| (shown("number", &key), bytes(key))),
        any::<i8>().prop_map(move |key| (shown("number", &key), bytes(key))),
        any::<u64>().prop_map(move |key| (shown("number", &key), bytes(key))),
        any::<u32>().prop_map(move |key| {
            let key = Ipv4Addr::from_bits(key);
            (shown("address", &key), bytes(key))
        }),
        any::<u128>().prop_map(move |key| {
            let key = Ipv6Addr::from_bits(key);
            (shown("address", &key), bytes(IpAddr::V6(key)))
        }),
        confusing().prop_map(move |a| (format!("({:?},)", a), bytes((a,)))),
        (confusing(), confusing()).prop_map(move |key| (shown("", &key), bytes(&key))),
        (confusing(), confusing(), confusing()).prop_map(move |key| (shown("", &key), bytes(&key))),
        (confusing(), (confusing(), confusing()))
            .prop_map(move |key| (shown("", &key), bytes(&key))),
        ((confusing(), confusing()), confusing())
            .prop_map(move |key| (shown("", &key), bytes(&key))),
        (0..3_i8, confusing()).prop_map(move |key| (shown("", &key), bytes(&key))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn values_of_one_type_differ_where_their_bytes_do(
        one in (text(), confusing(), 0..300_u16, any::<i64>()),
        other in (text(), confusing(), 0..300_u16, any::<i64>()),
    ) {
        prop_assert!(is_injective(&one, &other));
        prop_assert!(is_injective(&one.0, &other.0));
        prop_assert!(is_injective(&one.1, &other.1));
        prop_assert!(is_injective(&one.2, &other.2));
        prop_assert!(is_injective(&one.3, &other.3));
    }

    #[test]
    fn kinds_do_not_collide(one in any_key(), other in any_key()) {
        prop_assert_eq!(one.0 == other.0, one.1 == other.1, "{:?} {:?}", one, other);
    }

    /// A client that sends the bytes of another key does not get its count.
    #[test]
    fn bytes_cannot_pose_as_another_kind(key in any_key()) {
        let posing = bytes(&key.1);
        prop_assert!(posing != key.1 || key.0.starts_with("bytes"), "{:?}", key);
    }

    /// The same bytes, split in different ways.
    #[test]
    fn splits_of_a_text_are_different_tuples(all in "[ab\0]{1,200}", one in 0..200_usize, other in 0..200_usize) {
        let (one, other) = (one % all.len(), other % all.len());
        prop_assert!(is_injective(&all.split_at(one), &all.split_at(other)));
        prop_assert_ne!(bytes(all.split_at(one)), bytes(&all));
    }
}

#[test]
fn equal_values_share_a_count_whatever_their_type() {
    let same =
        |keys: &[Vec<u8>]| assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    same(&[bytes(7_u8), bytes(7_u16), bytes(7_u32), bytes(7_u64), bytes(7_u128), bytes(7_usize)]);
    same(&[
        bytes(7_i8),
        bytes(7_i16),
        bytes(7),
        bytes(7_i64),
        bytes(7_i128),
        bytes(7_isize),
        bytes(7_u8),
    ]);
    let (text, cow) = (String::from("alice"), Cow::Borrowed("alice"));
    same(&[
        bytes("alice"),
        bytes(&text),
        bytes(b"alice"),
        bytes(*b"alice"),
        bytes(b"alice".to_vec()),
    ]);
    same(&[
        bytes(text.clone().into_boxed_str()),
        bytes(Arc::<str>::from(&*text)),
        bytes(cow),
        bytes(text),
    ]);
    let v4 = Ipv4Addr::new(192, 0, 2, 7);
    same(&[bytes(v4), bytes(IpAddr::V4(v4))]);
    assert_ne!(bytes(v4), bytes(v4.to_ipv6_mapped()));
    same(&[bytes(IpAddr::V6(v4.to_ipv6_mapped()).to_canonical()), bytes(v4)]);
}

#[test]
fn numbers_are_their_fewest_bytes_after_a_mark() {
    for len in 0..=16 {
        let number = u128::MAX.checked_shr(128 - 8 * len as u32).unwrap_or(0);
        let key = bytes(number);
        assert_eq!(key[2..], vec![0xFF; len], "{number}");
        assert_eq!(key[..2], bytes(7_u8)[..2], "{number}");
    }
    assert_eq!(bytes(Ipv4Addr::new(192, 0, 2, 7))[2..], [192, 0, 2, 7]);
}

#[test]
fn text_and_bytes_are_not_copied() {
    let text = "a text of any length".repeat(100);
    assert_eq!(text.key_bytes().as_ref().as_ptr(), text.as_ptr());
    assert_eq!(text.as_bytes().key_bytes().as_ref().as_ptr(), text.as_ptr());
}

#[test]
fn every_method_takes_every_key() {
    let limiter = Limiter::new(Quota::per_day(3));
    let ip = IpAddr::from([192, 0, 2, 7]);
    let key = (ip, "/login");
    assert!(limiter.check(key).is_admitted());
    assert!(limiter.check_n(key, 2).is_admitted());
    assert!(!limiter.peek(key).admits);
    assert!(limiter.check((ip, "/")).is_admitted(), "another path");
    limiter.reset(key);
    assert!(limiter.check(key).is_admitted());
    assert!(limiter.block((), std::time::Duration::from_secs(1)).blocked);
    assert!(!limiter.check(()).is_admitted());
    assert!(limiter.unblock(()).admits);
    assert!(limiter.reserve(("tenant", 7), 3).is_admitted());
    assert!(!limiter.check(("tenant", 7_u64)).is_admitted(), "the same number");
}
