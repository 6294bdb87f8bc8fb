//! Claims of a token, once its signature has been verified.
//!
//! A key says by itself which algorithm it is for: an RSA key verifies RS256 and nothing else, a shared secret HS256. What a token's
//! header says can only select among the keys, so a public key never becomes a secret and `none` selects nothing. Keys that a token
//! brings along (`jwk`, `jku`, `x5c`) are not looked at.

mod base64;
mod form;
mod jwks;
mod key;
mod pem;
#[cfg(test)]
mod tests;

use key::Key;
use serde_json::{Map, Value};
use std::fmt;
use tollgate_policy::settings::{Jwt, JwtAlgorithm};

/// Verifies tokens as a file says.
pub struct Verifier {
    keys: Vec<Key>,
    algorithms: Vec<JwtAlgorithm>,
    issuer: Option<Box<str>>,
    audience: Option<Box<str>>,
}

/// Why a file of keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidKeys(pub(crate) String);

/// What a verified token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims(Map<String, Value>);

/// More is no token that anybody meant to send with each request.
const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// So many keys of one kind are tried for a token that does not name one.
const TRIES_MAX: usize = 8;
/// How far ahead of ours the clock of whoever made a token may be.
const AHEAD_S: u64 = 5;

impl Verifier {
    /// By these settings, with the content of the file that they name: a JSON Web Key Set, one JSON Web Key, a public key in
    /// PEM, or the bytes of a shared secret for HS256. One line ending after a secret that is text does not belong to it.
    ///
    /// # Errors
    ///
    /// When the file holds no key for any of the algorithms, or one that must not be used.
    pub fn new(jwt: &Jwt, file: &[u8]) -> Result<Self, InvalidKeys> {
        let keys = form::read(file, jwt.algorithms.contains(&JwtAlgorithm::Hs256))?;
        let keys: Vec<Key> =
            keys.into_iter().filter(|key| jwt.algorithms.contains(&key.algorithm())).collect();
        if keys.is_empty() {
            let wanted: Vec<&str> = jwt.algorithms.iter().map(|one| key::name(*one)).collect();
            return Err(InvalidKeys(format!(
                "no key for {}; see jwt.algorithms",
                wanted.join(", ")
            )));
        }
        Ok(Self {
            keys,
            algorithms: jwt.algorithms.clone(),
            issuer: jwt.issuer.clone(),
            audience: jwt.audience.clone(),
        })
    }

    /// What the token says, if someone with a key signed it, it is meant for us, and it is valid at `now_us`.
    pub fn verify(&self, token: &str, now_us: u64) -> Option<Claims> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header = object(header)?;
        let algorithm = key::parse(header.get("alg")?.as_str()?)?;
        if !self.algorithms.contains(&algorithm) || header.contains_key("crit") {
            return None;
        }
        let kid = match header.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str()?),
        };
        let signature = base64::decode(signature)?;
        let fits = |key: &&Key| key.algorithm() == algorithm && key.answers_to(kid);
        let mut keys = self.keys.iter().filter(fits).take(TRIES_MAX);
        if !keys.any(|key| key.verifies(signed.as_bytes(), &signature)) {
            return None;
        }
        let claims = object(claims)?;
        self.is_meant_for_us(&claims, now_us / 1_000_000).then_some(Claims(claims))
    }

    /// A claim of another type than it should have is not one to pass over.
    fn is_meant_for_us(&self, claims: &Map<String, Value>, now_s: u64) -> bool {
        let instant = |name: &str| claims.get(name).map(seconds);
        let is_alive = match instant("exp") {
            None => true,
            Some(expires) => expires.is_some_and(|expires_s| now_s < expires_s),
        };
        let has_begun = match instant("nbf") {
            None => true,
            Some(begins) => begins.is_some_and(|begins_s| begins_s <= now_s + AHEAD_S),
        };
        let is_from = self
            .issuer
            .as_ref()
            .is_none_or(|issuer| claims.get("iss").and_then(Value::as_str) == Some(issuer));
        let is_for = self.audience.as_ref().is_none_or(|audience| match claims.get("aud") {
            Some(Value::String(one)) => **one == **audience,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
            _ => false,
        });
        is_alive && has_begun && is_from && is_for
    }
}

impl Claims {
    /// Appends a claim as text: a text, a number, or true or false. A name with dots is that of a claim, else the way to one.
    pub fn write(&self, name: &str, out: &mut String) {
        let found = self.0.get(name).or_else(|| {
            let mut parts = name.split('.');
            let first = self.0.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))
        });
        match found {
            Some(Value::String(text)) => out.push_str(text),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => out.push_str(&value.to_string()),
            _ => {}
        }
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    match serde_json::from_slice(&base64::decode(part)?).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Whole seconds since the epoch, rounded down; before it is never.
fn seconds(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    number.as_u64().or_else(|| number.to_string().split_once('.')?.0.parse().ok())
}

/// Keys are shown to nobody.
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
