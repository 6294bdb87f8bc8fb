//! JSON Web Keys.

use super::key::{self, VerifyingKey};
use super::{InvalidKeys, base64};
use serde_json::Value;
use tollgate_policy::settings::JwtAlgorithm;

/// Reads the keys of a JSON Web Key Set, or a single key. Skips keys of unsupported types, as RFC
/// 7517 requires.
pub(super) fn read(file: &[u8]) -> Result<Vec<VerifyingKey>, InvalidKeys> {
    let value: Value = serde_json::from_slice(file)
        .map_err(|error| InvalidKeys(format!("not JSON, though it begins like it: {error}")))?;
    match value.get("keys") {
        None => one(&value).map(|key| key.into_iter().collect()),
        Some(Value::Array(keys)) => keys.iter().filter_map(|key| one(key).transpose()).collect(),
        Some(_) => Err(InvalidKeys("`keys` is not a list".into())),
    }
}

fn one(jwk: &Value) -> Result<Option<VerifyingKey>, InvalidKeys> {
    let text = |name: &str| match jwk.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(InvalidKeys(format!("`{name}` of a key is not a text"))),
    };
    let bytes = |name: &str| {
        let found = text(name)?.and_then(base64::decode);
        found.ok_or_else(|| InvalidKeys(format!("`{name}` of a key is not base64url")))
    };
    let name = text("kid")?.map(Box::from);
    if text("use")?.is_some_and(|purpose| purpose != "sig") || !may_verify(jwk)? {
        return Ok(None);
    }
    let algorithm = match (text("kty")?, text("crv")?) {
        (Some("oct"), _) => JwtAlgorithm::Hs256,
        (Some("RSA"), _) => JwtAlgorithm::Rs256,
        (Some("EC"), Some("P-256")) => JwtAlgorithm::Es256,
        (Some("OKP"), Some("Ed25519")) => JwtAlgorithm::EdDsa,
        (Some(_), _) => return Ok(None),
        (None, _) => return Err(InvalidKeys("a JSON Web Key has no `kty`".into())),
    };
    match text("alg")? {
        None => {}
        Some(alg) if alg == key::name(algorithm) => {}
        Some(alg) if key::parse(alg).is_some() => {
            let kind = text("kty")?.unwrap_or_default();
            return Err(InvalidKeys(format!(
                "a key has `alg` {alg}, which a key with `kty` {kind} cannot be for"
            )));
        }
        // The key is for an algorithm that is not supported here.
        Some(_) => return Ok(None),
    }
    let key = match algorithm {
        JwtAlgorithm::Hs256 => VerifyingKey::secret(&bytes("k")?, name),
        JwtAlgorithm::Rs256 => VerifyingKey::rsa(&bytes("n")?, &bytes("e")?, name),
        JwtAlgorithm::Es256 => {
            let mut point = vec![4];
            point.extend(bytes("x")?);
            point.extend(bytes("y")?);
            VerifyingKey::p256(point, name)
        }
        JwtAlgorithm::EdDsa => VerifyingKey::ed25519(bytes("x")?, name),
    };
    key.map(Some)
}

/// Whether `key_ops`, if present, lets the key verify signatures (RFC 7517 4.3).
fn may_verify(jwk: &Value) -> Result<bool, InvalidKeys> {
    let wrong = || InvalidKeys("`key_ops` of a key is not a list of texts".into());
    let Some(operations) = jwk.get("key_ops") else { return Ok(true) };
    let operations = operations.as_array().ok_or_else(wrong)?;
    if !operations.iter().all(Value::is_string) {
        return Err(wrong());
    }
    Ok(operations.iter().any(|operation| operation == "verify"))
}
