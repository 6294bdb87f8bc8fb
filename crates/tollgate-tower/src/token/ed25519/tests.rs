use super::is_point;
use ring::signature::{Ed25519KeyPair, KeyPair};

fn small(y: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0] = y;
    bytes
}

#[test]
fn keys_of_others_are_points() {
    for seed in 0..32 {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let key: [u8; 32] = pair.public_key().as_ref().try_into().unwrap();
        assert!(is_point(&key), "{seed}");
    }
}

/// By the same rule in another language: half of all numbers are the `y` of some point.
#[test]
fn small_numbers_are_points_or_not() {
    let points = [3, 4, 5, 6, 9, 10, 14, 15, 16, 18, 19, 21, 23, 24, 25, 26, 27, 28, 29, 30];
    for y in 2..=30 {
        assert_eq!(is_point(&small(y)), points.contains(&y), "{y}");
        let mut negative = small(y);
        negative[31] |= 0x80;
        assert_eq!(is_point(&negative), points.contains(&y), "the other point of {y}");
    }
}

#[test]
fn weak_points_and_numbers_out_of_range_are_none() {
    let mut largest = [0xff; 32];
    largest[31] = 0x7f;
    let p = |last: u8| {
        let mut bytes = largest;
        bytes[0] = last;
        bytes
    };
    let order_8: [u8; 32] = [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ];
    for bytes in [small(0), small(1), p(0xec), p(0xed), p(0xee), p(0xff), order_8, [0xff; 32]] {
        assert!(!is_point(&bytes), "{bytes:x?}");
    }
}
