use super::{next_value, push_absent, push_value};
use crate::limit::Limit;
use proptest::prelude::*;

proptest! {
    #[test]
    fn values_come_back(
        values in proptest::collection::vec(
            proptest::option::of(proptest::collection::vec(any::<u8>(), 1..300)),
            0..6,
        ),
    ) {
        let mut key = Vec::new();
        for value in &values {
            match value {
                Some(value) => push_value(&mut key, value),
                None => push_absent(&mut key),
            }
        }
        let mut rest = &*key;
        for value in &values {
            prop_assert_eq!(next_value(&mut rest), Some(value.as_deref().unwrap_or_default()));
        }
        prop_assert_eq!(next_value(&mut rest), None);
    }

    #[test]
    fn any_bytes_are_read(key in proptest::collection::vec(any::<u8>(), 0..64)) {
        let limit = Limit::new("l", &["user", "ip"], None);
        let _ = limit.key_values(0, &key);
    }
}

#[test]
fn an_address_is_text_again_and_an_absent_value_is_left_out() {
    let limit = Limit::new("l", &["ip", "user", "path"], None);
    let mut key = Vec::new();
    push_value(&mut key, &[203, 0, 113, 9]);
    push_absent(&mut key);
    push_value(&mut key, b"/a b");
    let values = limit.key_values(0, &key);
    assert_eq!(values, [("ip", "203.0.113.9".into()), ("path", "/a b".into())]);
    key.push(1);
    assert!(limit.key_values(0, &key).is_empty(), "bytes of another key");
}
