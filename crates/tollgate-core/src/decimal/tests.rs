use super::{push_decimal, write_decimal};
use alloc::{string::ToString, vec::Vec};
use proptest::prelude::*;

fn decimal(value: u64) -> Vec<u8> {
    let mut out = b"x".to_vec();
    push_decimal(&mut out, value);
    let mut array = [b'x'; 1 + 24];
    let end = write_decimal(&mut array, 1, value);
    assert_eq!(array[..end], out, "in an array as in a vector");
    out.split_off(1)
}

#[test]
fn numbers_around_every_length_are_written_as_digits() {
    for power in 0..20 {
        let power = 10_u64.pow(power);
        for value in [power - 1, power, power + 1, power.saturating_mul(9), 0, u64::MAX] {
            assert_eq!(decimal(value), value.to_string().into_bytes());
        }
    }
}

proptest! {
    #[test]
    fn any_number_is_written_as_digits(value: u64, shift in 0..64) {
        let value = value >> shift;
        prop_assert_eq!(decimal(value), value.to_string().into_bytes());
    }
}
