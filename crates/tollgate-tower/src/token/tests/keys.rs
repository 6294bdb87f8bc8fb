//! The keys of a file that are used, and their number.

use super::{encode, jwt};
use crate::token::{InvalidKeys, Verifier};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use tollgate_policy::settings::JwtAlgorithm;

fn p256_jwk(fields: &str) -> String {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random)
        .unwrap();
    let point = pair.public_key().as_ref();
    let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
    format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"{fields}}}"#)
}

fn es256(keys: &[String]) -> Result<Verifier, InvalidKeys> {
    let file = format!(r#"{{"keys":[{}]}}"#, keys.join(","));
    Verifier::new(&jwt("algorithms: [ES256]"), file.as_bytes())
}

/// A forged token costs a verification for each key tried, so the number of keys is bounded.
#[test]
fn few_keys_are_tried_for_one_token() {
    let unnamed = |count: usize| (0..count).map(|_| p256_jwk("")).collect::<Vec<_>>();
    let named = |count: usize| {
        (0..count).map(|n| p256_jwk(&format!(r#","kid":"k{n}""#))).collect::<Vec<_>>()
    };
    assert!(es256(&unnamed(4)).is_ok());
    let why = es256(&unnamed(8)).unwrap_err().to_string();
    assert!(why.contains("8 keys for ES256") && why.contains("`kid`"), "{why}");
    assert!(es256(&[unnamed(4), named(1)].concat()).is_err());
    assert!(es256(&vec![p256_jwk(r#","kid":"same""#); 5]).is_err());
    let many = es256(&named(100)).unwrap();
    assert_eq!(many.keys(JwtAlgorithm::Es256, Some("k7")).count(), 1);
    assert_eq!(many.keys(JwtAlgorithm::Es256, None).count(), 0, "too many to try");
    let mixed = es256(&[unnamed(2), named(6)].concat()).unwrap();
    assert_eq!(mixed.keys(JwtAlgorithm::Es256, None).count(), 2);
    assert_eq!(mixed.keys(JwtAlgorithm::Es256, Some("k1")).count(), 3);
    let few = es256(&named(4)).unwrap();
    assert_eq!(few.keys(JwtAlgorithm::Es256, None).count(), 4);
}

/// `use`, `key_ops` and `alg` select keys; a mistake in them is an error.
#[test]
fn keys_are_used_for_what_they_are_for() {
    for (fields, used) in [
        ("", true),
        (r#","use":"sig""#, true),
        (r#","use":"enc""#, false),
        (r#","key_ops":["verify"]"#, true),
        (r#","key_ops":["sign","verify"],"use":"sig""#, true),
        (r#","key_ops":["sign"]"#, false),
        (r#","key_ops":["deriveKey","deriveBits"]"#, false),
        (r#","key_ops":[]"#, false),
        (r#","key_ops":["verify"],"use":"enc""#, false),
        (r#","alg":"ES256""#, true),
        (r#","alg":"ECDH-ES""#, false),
    ] {
        let found = es256(&[p256_jwk(fields)]);
        if used {
            assert!(found.is_ok(), "{fields}: {found:?}");
        } else {
            let why = found.unwrap_err().to_string();
            assert!(why.contains("no key for ES256"), "{fields}: {why}");
        }
    }
    for (fields, why) in [
        (r#","key_ops":"verify""#, "`key_ops` of a key is not a list of texts"),
        (r#","key_ops":[1]"#, "`key_ops` of a key is not a list of texts"),
        (r#","use":["sig"]"#, "`use` of a key is not a text"),
        (r#","kid":7"#, "`kid` of a key is not a text"),
        (r#","alg":"RS256""#, "`alg` RS256, which a key with `kty` EC cannot be for"),
    ] {
        let found = es256(&[p256_jwk(fields)]).unwrap_err().to_string();
        assert!(found.contains(why), "{fields}: {found}");
    }
}

#[test]
fn p256_keys_off_the_curve_are_refused() {
    let one = encode(&{
        let mut one = [0; 32];
        one[31] = 1;
        one
    });
    let zero = encode(&[0; 32]);
    for (x, y) in [(&one, &one), (&zero, &zero)] {
        let jwk = format!(r#"{{"kty":"EC","crv":"P-256","kid":"k","x":"{x}","y":"{y}"}}"#);
        let why = es256(&[jwk]).unwrap_err().to_string();
        assert_eq!(why, "the P-256 key `k` is not on the curve");
    }
}

/// The eight points of small order in every encoding that ring reads, canonical or not.
#[test]
fn keys_that_anybody_can_sign_for_are_refused() {
    let small = |y: u8| {
        let mut bytes = [0; 32];
        bytes[0] = y;
        bytes
    };
    let near_prime = |last: u8| {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (last, 0x7f);
        bytes
    };
    let order_8: [u8; 32] = [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ];
    // 2^255 - 19 minus the number above.
    let mut minus_order_8 = order_8.map(|byte| !byte);
    (minus_order_8[0], minus_order_8[31]) = (0xed - 0x26, 0x7f - 0x05);
    let points = [small(0), small(1), near_prime(0xec), near_prime(0xed), near_prime(0xee)];
    for mut point in points.into_iter().chain([order_8, minus_order_8]) {
        for sign in [0, 0x80] {
            point[31] = point[31] & 0x7f | sign;
            let why = eddsa(&point).unwrap_err().to_string();
            assert_eq!(
                why, "the Ed25519 key is a weak point: anybody can forge its signatures",
                "{point:x?}"
            );
        }
    }
    for seed in 0..8 {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        assert!(eddsa(pair.public_key().as_ref()).is_ok(), "{seed}");
    }
}

fn eddsa(key: &[u8]) -> Result<Verifier, InvalidKeys> {
    let jwk = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"}}"#, encode(key));
    Verifier::new(&jwt("algorithms: [EdDSA]"), jwk.as_bytes())
}
