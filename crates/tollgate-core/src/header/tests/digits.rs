//! Tests numbers digit by digit.

use crate::header::{SF_INTEGER_MAX, write::uint};
use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

fn written(value: u64) -> Vec<u8> {
    let mut out = b"=".to_vec();
    uint(&mut out, value);
    out.split_off(1)
}

#[test]
fn every_two_digits_in_every_place() {
    for pair in 0..100 {
        for place in (0..15).map(|zeros| 10_u64.pow(zeros)) {
            let value = (pair * place).min(SF_INTEGER_MAX);
            assert_eq!(written(value), value.to_string().as_bytes());
        }
    }
}

#[test]
fn around_every_length() {
    let lengths = (1..16).map(|len| 10_u64.pow(len)).chain([SF_INTEGER_MAX]);
    for value in lengths.flat_map(|end| [end - 1, end, end + 1]) {
        assert_eq!(written(value), value.min(SF_INTEGER_MAX).to_string().as_bytes());
    }
    assert_eq!(written(u64::MAX), SF_INTEGER_MAX.to_string().as_bytes());
}

proptest! {
    #[test]
    fn any_number(value in 0..=SF_INTEGER_MAX, shift in 0..50_u32) {
        let value = value >> shift;
        prop_assert_eq!(written(value), value.to_string().into_bytes());
    }
}
