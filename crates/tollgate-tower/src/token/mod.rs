//! JWT verification: bearer tokens, the keys that verify them, and their claims.
//!
//! Each key has one algorithm: an RSA key verifies only RS256, a shared secret only HS256. The
//! header of a token can only select among the keys. So a public key never serves as a secret, and
//! `none` selects no key. Keys inside a token (`jwk`, `jku`, `x5c`) are ignored.

mod base64;
mod bearer;
mod jwks;
mod key;
mod key_file;
mod pem;
#[cfg(test)]
mod tests;

use key::VerifyingKey;
use serde_json::{Map, Value};
use std::fmt;
use tollgate_policy::facts::Unverified;
use tollgate_policy::settings::{Jwt, JwtAlgorithm};

pub(crate) use bearer::find as bearer;

/// Verifies tokens with the keys of a file.
pub struct Verifier {
    keys: Vec<VerifyingKey>,
    algorithms: Vec<JwtAlgorithm>,
    issuer: Option<Box<str>>,
    audience: Option<Box<str>>,
    leeway_us: u64,
}

/// The reason why a key file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidKeys(pub(crate) String);

/// The claims of a verified token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims(Map<String, Value>);

/// Limit of the length of a token.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// The most keys of one algorithm that are tried for one token. Larger sets need a `kid` for each
/// key: each attempt costs a verification, for forged tokens too.
const KEYS_TRIED_MAX: usize = 4;

impl Verifier {
    /// Creates a verifier from the settings and the content of the key file. The file is a JSON Web
    /// Key Set, one JSON Web Key, a public key in PEM, or a shared secret for HS256. One line
    /// ending after a text secret is not part of the secret.
    ///
    /// # Errors
    ///
    /// If the file has no key for any of the algorithms, or has an unsafe key.
    pub fn new(jwt: &Jwt, file: &[u8]) -> Result<Self, InvalidKeys> {
        let keys = key_file::read(file, jwt.algorithms.contains(&JwtAlgorithm::Hs256))?;
        let keys: Vec<VerifyingKey> =
            keys.into_iter().filter(|key| jwt.algorithms.contains(&key.algorithm())).collect();
        if keys.is_empty() {
            let wanted: Vec<&str> = jwt.algorithms.iter().map(|one| key::name(*one)).collect();
            return Err(InvalidKeys(format!(
                "no key for {}; see jwt.algorithms",
                wanted.join(", ")
            )));
        }
        check_key_count(&keys)?;
        Ok(Self {
            keys,
            algorithms: jwt.algorithms.clone(),
            issuer: jwt.issuer.clone(),
            audience: jwt.audience.clone(),
            leeway_us: jwt.leeway_us,
        })
    }

    /// Returns the claims of the token, if one of the keys signed it, its issuer and audience
    /// match, and it is valid at `now_us`.
    ///
    /// # Errors
    ///
    /// The reason why the token does not verify.
    pub fn verify(&self, token: &str, now_us: u64) -> Result<Claims, Unverified> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Unverified::TooLong);
        }
        let parts = token.rsplit_once('.').and_then(|(signed, signature)| {
            let (header, claims) = signed.split_once('.')?;
            Some((signed, decode_object(header)?, claims, base64::decode(signature)?))
        });
        let (signed, header, claims, signature) = parts.ok_or(Unverified::Malformed)?;
        let named = header.get("alg").and_then(Value::as_str).and_then(key::parse);
        let algorithm = named.ok_or(Unverified::Algorithm)?;
        if !self.algorithms.contains(&algorithm) || header.contains_key("crit") {
            return Err(Unverified::Algorithm);
        }
        let kid = match header.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str().ok_or(Unverified::Malformed)?),
        };
        let mut keys = self.keys(algorithm, kid).peekable();
        if keys.peek().is_none() {
            return Err(Unverified::Key);
        }
        if !keys.any(|key| key.verifies(signed.as_bytes(), &signature)) {
            return Err(Unverified::Signature);
        }
        let claims = decode_object(claims).ok_or(Unverified::Malformed)?;
        self.check_claims(&claims, now_us)?;
        Ok(Claims(claims))
    }

    /// The keys to try for a token, [`KEYS_TRIED_MAX`] of them at most. A token without a `kid` is
    /// tried with all keys of its algorithm if there are few. Otherwise it is tried with the keys
    /// that have no `kid`.
    fn keys(
        &self,
        algorithm: JwtAlgorithm,
        kid: Option<&str>,
    ) -> impl Iterator<Item = &VerifyingKey> {
        let fits = move |key: &&VerifyingKey| key.algorithm() == algorithm;
        let are_few = self.keys.iter().filter(fits).nth(KEYS_TRIED_MAX).is_none();
        self.keys.iter().filter(fits).filter(move |key| match (key.name(), kid) {
            (None, _) => true,
            (Some(_), None) => are_few,
            (Some(name), Some(kid)) => name == kid,
        })
    }

    /// Checks issuer, audience and times. A claim of the wrong type is an error; it is not treated
    /// as absent.
    fn check_claims(&self, claims: &Map<String, Value>, now_us: u64) -> Result<(), Unverified> {
        let instant_us = |name: &str| {
            let seconds = claims.get(name).map(|value| seconds(value).ok_or(Unverified::Claim));
            Ok(seconds.transpose()?.map(|seconds| seconds.saturating_mul(1_000_000)))
        };
        let is_over = |expires_us: u64| now_us >= expires_us.saturating_add(self.leeway_us);
        if instant_us("exp")?.is_some_and(is_over) {
            return Err(Unverified::Expired);
        }
        let is_early = |begins_us: u64| now_us.saturating_add(self.leeway_us) < begins_us;
        if instant_us("nbf")?.is_some_and(is_early) {
            return Err(Unverified::NotYetValid);
        }
        let is_from = |issuer: &str| claims.get("iss").and_then(Value::as_str) == Some(issuer);
        if self.issuer.as_deref().is_some_and(|issuer| !is_from(issuer)) {
            return Err(Unverified::Issuer);
        }
        let is_for = |audience: &str| match claims.get("aud") {
            Some(Value::String(one)) => **one == *audience,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
            _ => false,
        };
        if self.audience.as_deref().is_some_and(|audience| !is_for(audience)) {
            return Err(Unverified::Audience);
        }
        Ok(())
    }
}

/// Refuses key sets that would let a token try more than [`KEYS_TRIED_MAX`] keys.
fn check_key_count(keys: &[VerifyingKey]) -> Result<(), InvalidKeys> {
    for key in keys {
        let is_tried = |other: &&VerifyingKey| {
            other.algorithm() == key.algorithm()
                && (other.name().is_none() || other.name() == key.name())
        };
        let tried = keys.iter().filter(is_tried).count();
        if tried > KEYS_TRIED_MAX {
            let algorithm = key::name(key.algorithm());
            return Err(InvalidKeys(format!(
                "{tried} keys for {algorithm} would be tried for one token, and {KEYS_TRIED_MAX} are the most; give each key a `kid` of its own"
            )));
        }
    }
    Ok(())
}

impl Claims {
    /// Appends a claim as text: a string, a number or a boolean. A name with dots is first looked
    /// up as a claim, then as a path.
    ///
    /// # Errors
    ///
    /// If the claim is a list or an object, which cannot be an attribute.
    pub fn write(&self, name: &str, out: &mut String) -> Result<(), Unverified> {
        let found = self.0.get(name).or_else(|| {
            let mut parts = name.split('.');
            let first = self.0.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))
        });
        match found {
            Some(Value::String(text)) => out.push_str(text),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => out.push_str(&value.to_string()),
            Some(Value::Array(_) | Value::Object(_)) => return Err(Unverified::Claim),
            Some(Value::Null) | None => {}
        }
        Ok(())
    }
}

fn decode_object(part: &str) -> Option<Map<String, Value>> {
    match serde_json::from_slice(&base64::decode(part)?).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Whole seconds since the epoch, rounded down; `None` before the epoch.
fn seconds(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    number.as_u64().or_else(|| number.to_string().split_once('.')?.0.parse().ok())
}

/// Does not show the keys.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl fmt::Display for InvalidKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidKeys {}
