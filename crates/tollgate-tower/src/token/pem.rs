//! Public keys in PEM, as `openssl pkey -pubout` writes them.

use super::InvalidKeys;
use super::key::VerifyingKey;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

pub(super) fn read(file: &[u8]) -> Result<VerifyingKey, InvalidKeys> {
    let wrong =
        |what: &str| InvalidKeys(format!("{what} public key in PEM, from {BEGIN} to {END}"));
    let text = str::from_utf8(file).map_err(|_| wrong("a broken"))?;
    let rest = text.strip_prefix(BEGIN).ok_or_else(|| wrong("not a"))?;
    let body = rest.split_once(END).ok_or_else(|| wrong("a broken"))?.0;
    let der = decode(body).ok_or_else(|| wrong("a broken"))?;
    key(&der).unwrap_or_else(|| Err(InvalidKeys("not a key of RSA, P-256 or Ed25519".into())))
}

/// Whether the file is a public key in DER: the content of PEM without its text form.
pub(super) fn is_der(file: &[u8]) -> bool {
    key(file).is_some()
}

/// Parses a SubjectPublicKeyInfo: the algorithm, then the bits of the key.
fn key(der: &[u8]) -> Option<Result<VerifyingKey, InvalidKeys>> {
    let (info, []) = take(der, 0x30)? else { return None };
    let (kind, rest) = take(info, 0x30)?;
    let (bits, []) = take(rest, 0x03)? else { return None };
    let (0, bits) = bits.split_first()? else { return None };
    let (kind, parameters) = take(kind, 0x06)?;
    Some(match kind {
        RSA => rsa(bits)?,
        EC if take(parameters, 0x06)?.0 == P256 => VerifyingKey::p256(bits.into(), None),
        ED25519 => VerifyingKey::ed25519(bits.into(), None),
        _ => return None,
    })
}

/// Parses an RSAPublicKey: the modulus and the exponent.
fn rsa(bits: &[u8]) -> Option<Result<VerifyingKey, InvalidKeys>> {
    let (parts, []) = take(bits, 0x30)? else { return None };
    let (n, rest) = take(parts, 0x02)?;
    let (e, []) = take(rest, 0x02)? else { return None };
    Some(VerifyingKey::rsa(n, e, None))
}

/// The content of the element with this tag, and the bytes after it.
fn take(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&one, rest) = rest.split_first()?;
            (usize::from(one), rest)
        }
        0x82 => {
            let (&two, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(two)), rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length)).flatten()
}

/// Decodes the standard base64 alphabet, with padding and line ends.
fn decode(body: &str) -> Option<Vec<u8>> {
    let plain = body.chars().filter(|character| !character.is_ascii_whitespace());
    let url = plain.map(|character| match character {
        '+' => '-',
        '/' => '_',
        // PEM has neither character.
        '-' | '_' => '!',
        other => other,
    });
    super::base64::decode(url.collect::<String>().trim_end_matches('='))
}
