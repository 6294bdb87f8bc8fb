//! Which keys of a file are used, and how many.

use super::{encode, jwt};
use crate::token::{InvalidKeys, Verifier};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
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

/// Whoever makes tokens up has signatures verified, so there is a bound on how many for each.
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

/// A key says what it is for, and a key that could not verify anything is noticed where somebody sees it.
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
        match used {
            true => assert!(found.is_ok(), "{fields}: {found:?}"),
            false => {
                let why = found.unwrap_err().to_string();
                assert!(why.contains("no key for ES256"), "{fields}: {why}");
            }
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
fn keys_off_their_curve_are_refused() {
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
    let mut two = [0; 32];
    two[0] = 2;
    for x in [encode(&two), zero] {
        let jwk = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}"#);
        let why = Verifier::new(&jwt("algorithms: [EdDSA]"), jwk.as_bytes()).unwrap_err();
        assert!(why.to_string().contains("is not on the curve"), "{why}");
    }
}
