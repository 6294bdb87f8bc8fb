//! A verification key and its one algorithm.

use super::InvalidKeys;
use ring::{agreement, hmac, signature};
use tollgate_policy::settings::JwtAlgorithm;

/// A key that verifies signatures.
pub(super) struct VerifyingKey {
    name: Option<Box<str>>,
    material: KeyMaterial,
}

enum KeyMaterial {
    Secret(hmac::Key),
    Rsa(signature::RsaPublicKeyComponents<Vec<u8>>),
    /// An uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// RFC 7518 3.2: a shorter secret is easier to guess than the signature.
pub(super) const SECRET_BYTES_MIN: usize = 32;
/// RFC 7518 3.3 requires 2048 bits; verification with more than 8192 takes too long. The check is
/// by whole bytes, so a modulus may lack a few bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 2048 / 8..=8192 / 8;
/// The largest exponent that ring accepts: 33 bits. The least is 3.
const EXPONENT_MAX: u64 = (1 << 33) - 1;

impl VerifyingKey {
    pub(super) fn secret(bytes: &[u8], name: Option<Box<str>>) -> Result<Self, InvalidKeys> {
        if bytes.len() < SECRET_BYTES_MIN {
            let why = format!("a secret for HS256 has {SECRET_BYTES_MIN} bytes at least");
            return Err(InvalidKeys(why));
        }
        let secret = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        Ok(Self { name, material: KeyMaterial::Secret(secret) })
    }

    /// Refuses a key whose signatures could never verify, so that its file is reported.
    pub(super) fn rsa(n: &[u8], e: &[u8], name: Option<Box<str>>) -> Result<Self, InvalidKeys> {
        // Some encoders write a leading zero, as DER does. ring refuses it.
        let (n, e) = (without_zeros(n), without_zeros(e));
        let refuse = |why: String| Err(refused("RSA", name.as_deref(), &why));
        if !MODULUS_BYTES.contains(&n.len()) {
            let bits = n.first().map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
            return refuse(format!("has {bits} bits, and RS256 takes 2048 to 8192"));
        }
        let exponent = e.iter().try_fold(0_u64, |sum, byte| {
            sum.checked_mul(256).map(|shifted| shifted | u64::from(*byte))
        });
        let is_odd = |bytes: &[u8]| bytes.last().is_some_and(|last| last % 2 == 1);
        let is_exponent = exponent.is_some_and(|e| (3..=EXPONENT_MAX).contains(&e)) && is_odd(e);
        if !is_exponent || !is_odd(n) {
            return refuse("has a modulus or an exponent that no such key has".into());
        }
        let parts = signature::RsaPublicKeyComponents { n: n.to_vec(), e: e.to_vec() };
        Ok(Self { name, material: KeyMaterial::Rsa(parts) })
    }

    pub(super) fn p256(point: Vec<u8>, name: Option<Box<str>>) -> Result<Self, InvalidKeys> {
        if point.len() != 65 || point.first() != Some(&4) {
            let why = "is not a point of P-256, not compressed, which ES256 takes";
            return Err(refused("P-256", name.as_deref(), why));
        }
        if !is_on_p256(&point) {
            return Err(refused("P-256", name.as_deref(), "is not on the curve"));
        }
        Ok(Self { name, material: KeyMaterial::P256(point) })
    }

    pub(super) fn ed25519(bytes: Vec<u8>, name: Option<Box<str>>) -> Result<Self, InvalidKeys> {
        if bytes.len() != 32 {
            let why = "does not have the 32 bytes of an Ed25519 key, the only kind for EdDSA";
            return Err(refused("Ed25519", name.as_deref(), why));
        }
        if is_forgeable(&bytes) {
            let why = "is a weak point: anybody can forge its signatures";
            return Err(refused("Ed25519", name.as_deref(), why));
        }
        Ok(Self { name, material: KeyMaterial::Ed25519(bytes) })
    }

    /// The only algorithm of the key, regardless of what a token says.
    pub(super) fn algorithm(&self) -> JwtAlgorithm {
        match self.material {
            KeyMaterial::Secret(_) => JwtAlgorithm::Hs256,
            KeyMaterial::Rsa(_) => JwtAlgorithm::Rs256,
            KeyMaterial::P256(_) => JwtAlgorithm::Es256,
            KeyMaterial::Ed25519(_) => JwtAlgorithm::EdDsa,
        }
    }

    /// The key's `kid`.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn verifies(&self, message: &[u8], signed: &[u8]) -> bool {
        let public = |algorithm: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(algorithm, key).verify(message, signed).is_ok()
        };
        match &self.material {
            KeyMaterial::Secret(secret) => hmac::verify(secret, message, signed).is_ok(),
            KeyMaterial::Rsa(parts) => {
                let algorithm = &signature::RSA_PKCS1_2048_8192_SHA256;
                parts.verify(algorithm, message, signed).is_ok()
            }
            KeyMaterial::P256(key) => public(&signature::ECDSA_P256_SHA256_FIXED, key),
            KeyMaterial::Ed25519(key) => public(&signature::ED25519, key),
        }
    }
}

fn refused(kind: &str, name: Option<&str>, why: &str) -> InvalidKeys {
    let name = name.map(|name| format!(" `{name}`")).unwrap_or_default();
    InvalidKeys(format!("the {kind} key{name} {why}"))
}

/// Whether the point is on the curve. ring refuses a key agreement with any other point.
fn is_on_p256(point: &[u8]) -> bool {
    let random = ring::rand::SystemRandom::new();
    let Ok(ours) = agreement::EphemeralPrivateKey::generate(&agreement::ECDH_P256, &random) else {
        return false;
    };
    let theirs = agreement::UnparsedPublicKey::new(&agreement::ECDH_P256, point);
    agreement::agree_ephemeral(ours, &theirs, |_| ()).is_ok()
}

/// Whether signatures for this Ed25519 key can be forged, such as for 32 zeros.
///
/// Such a key is a point with an order of at most 8. The signature of the neutral point and zero
/// then fits about one message in eight. It fits no message under any other key.
fn is_forgeable(key: &[u8]) -> bool {
    const MESSAGES: u8 = 64;
    let mut forged = [0; 64];
    forged[0] = 1;
    let key = signature::UnparsedPublicKey::new(&signature::ED25519, key);
    (0..MESSAGES).any(|message| key.verify(&[message], &forged).is_ok())
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// The name of the algorithm in tokens and files.
pub(super) const fn name(algorithm: JwtAlgorithm) -> &'static str {
    match algorithm {
        JwtAlgorithm::Hs256 => "HS256",
        JwtAlgorithm::Rs256 => "RS256",
        JwtAlgorithm::Es256 => "ES256",
        JwtAlgorithm::EdDsa => "EdDSA",
    }
}

/// Parses the name of an algorithm. Case is significant: `None` and `NONE` are as unknown as
/// `none`.
pub(super) fn parse(text: &str) -> Option<JwtAlgorithm> {
    use JwtAlgorithm::{EdDsa, Es256, Hs256, Rs256};
    [Hs256, Rs256, Es256, EdDsa].into_iter().find(|algorithm| name(*algorithm) == text)
}
