use super::{line, lower_word};
use proptest::prelude::*;

#[test]
fn every_byte_is_lowered_as_ascii_is() {
    for byte in 0..=u8::MAX {
        for place in 0..8 {
            let mut bytes = [b'Z'; 8];
            bytes[place] = byte;
            assert_eq!(lower_word(bytes), bytes.map(|byte| byte.to_ascii_lowercase()));
        }
    }
}

proptest! {
    #[test]
    fn a_name_is_lowered_behind_whatever_is_there(before: Vec<u8>, name: Vec<u8>, value: Vec<u8>) {
        let mut out = before.clone();
        line(&name, &value, &mut out);
        let expected = [&before, &name.to_ascii_lowercase()[..], b": ", &value, b"\r\n"].concat();
        prop_assert_eq!(out, expected);
    }
}
