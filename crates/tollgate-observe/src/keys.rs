//! Keys as operators see them: in clear where the policy says so, otherwise hashed.
//!
//! A hash is `~` and 16 hexadecimal digits: HMAC-SHA-256 of an attribute's name and value. So one
//! user has one hash under all limits, and on all nodes that share the secret. The secret is that
//! of `keys_secret`, else one that a shared store keeps for its nodes, else one of the process.

use arc_swap::ArcSwapOption;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex};
use tollgate::StoreError;
use tollgate::engine::Rules;
use tollgate::store::redis::{RedisStore, SharedChange, SharedTable};
use tollgate_net::lock;
use tollgate_policy::limit::{Limit, Selector};

/// The table of a shared store, and the name of the secret in it.
const TABLE: &str = "keys";
const NAME: &str = "secret";
/// Digits of a hash: 64 bits.
const DIGITS: usize = 16;
/// The block of SHA-256, which HMAC pads a key to.
const BLOCK: usize = 64;

/// The secrets that hash keys. The first one that is set counts.
#[derive(Default)]
pub struct KeySecrets {
    configured: ArcSwapOption<SecretBytes>,
    shared: ArcSwapOption<SecretBytes>,
    process: SecretBytes,
    /// What the store has, or had before it lost the table.
    table: Mutex<SharedTable>,
}

struct SecretBytes([u8; 32]);

/// A key for people: its attributes, in clear or hashed. Empty for a bucket that all requests
/// share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShownKey(pub Vec<(Box<str>, String)>);

impl Default for SecretBytes {
    fn default() -> Self {
        let mut bytes = [0; 32];
        // The system always has random numbers once it has started.
        if let Err(error) = getrandom::fill(&mut bytes) {
            tracing::error!(%error, "the system has no random numbers; hashed keys are guessable");
        }
        Self(bytes)
    }
}

impl KeySecrets {
    /// Uses the secret of the file from now on, or with `None` that of the store or the process.
    pub fn configure(&self, secret: Option<&str>) {
        let digest = |secret: &str| Arc::new(SecretBytes(Sha256::digest(secret).into()));
        self.configured.store(secret.map(digest));
    }

    /// The hash of an attribute's value.
    pub fn hash(&self, attribute: &str, value: &[u8]) -> String {
        let chosen = self.configured.load_full().or_else(|| self.shared.load_full());
        let secret = chosen.as_deref().unwrap_or(&self.process);
        // A name has no zero byte, so no two pairs are one text.
        let mac = hmac(&secret.0, &[attribute.as_bytes(), &[0], value]);
        let digits: String = mac[..DIGITS / 2].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("~{digits}")
    }

    /// A key for people. An API key is never in clear, nor are tokens and other secrets.
    pub fn show(&self, rules: &Rules, limit: &Limit, key_index: usize, key: &[u8]) -> ShownKey {
        let values = limit.key_values(key_index, key);
        if values.is_empty() && !key.is_empty() {
            let attribute =
                if limit.selector == Selector::Descriptor { "descriptor" } else { "key" };
            return ShownKey(vec![(attribute.into(), self.hash(attribute, key))]);
        }
        let show = |(attribute, value): (&str, Cow<'_, str>)| {
            (attribute.into(), self.show_value(rules, limit, attribute, &value))
        };
        ShownKey(values.into_iter().map(show).collect())
    }

    /// One attribute of a key for people.
    pub fn show_value(&self, rules: &Rules, limit: &Limit, attribute: &str, value: &str) -> String {
        let is_secret = attribute == "api_key" || rules.http_policy().holds_secret(attribute);
        // A clear value that looks like a hash would stand for another key.
        let is_clear = limit.show_keys && !is_secret && !is_hash(value);
        if is_clear { value.to_owned() } else { self.hash(attribute, value.as_bytes()) }
    }
}

/// Whether a value of an attribute is a hash of one.
pub fn is_hash(value: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = value.strip_prefix('~').unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(is_digit)
}

impl KeySecrets {
    /// Takes the secret that all nodes of the store share, and makes one where there is none. A
    /// store that lost it gets it again.
    ///
    /// # Errors
    ///
    /// If the store cannot be asked.
    pub async fn poll_shared(&self, store: &RedisStore) -> Result<(), StoreError> {
        if self.configured.load().is_some() {
            return Ok(());
        }
        let known = lock(&self.table).clone();
        let mut stored = store.shared_table(TABLE).await?;
        if stored.get(NAME).is_none() && known.get(NAME).is_none() {
            let value: String =
                SecretBytes::default().0.iter().map(|byte| format!("{byte:02x}")).collect();
            let change = SharedChange { name: NAME, is_cleared: false, value: &value };
            stored = store.write_shared_table(TABLE, &known, Some(change)).await?;
        } else if stored.is_behind(&known) {
            stored = store.write_shared_table(TABLE, &known, None).await?;
        }
        let mut table = lock(&self.table);
        let Some(value) = stored.get(NAME).filter(|value| table.is_before(NAME, value)) else {
            return Ok(());
        };
        table.merge(NAME, value);
        let secret = SecretBytes(Sha256::digest(&*value.value).into());
        self.shared.store(Some(Arc::new(secret)));
        Ok(())
    }
}

/// HMAC-SHA-256 (RFC 2104) of the parts.
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let padded = |pad: u8| {
        let mut block = [pad; BLOCK];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        Sha256::new_with_prefix(block)
    };
    let mut inner = padded(0x36);
    parts.iter().for_each(|part| inner.update(part));
    let mut outer = padded(0x5c);
    outer.update(inner.finalize());
    outer.finalize().into()
}

impl fmt::Display for ShownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (attribute, value)) in self.0.iter().enumerate() {
            let separator = if place > 0 { " " } else { "" };
            write!(f, "{separator}{attribute}={value}")?;
        }
        Ok(())
    }
}

impl Serialize for ShownKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (attribute, value) in &self.0 {
            map.serialize_entry(attribute, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ShownKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShownAttributes;
        impl<'de> Visitor<'de> for ShownAttributes {
            type Value = ShownKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("attributes with their values")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ShownKey, M::Error> {
                let mut attributes = Vec::new();
                while let Some(attribute) = map.next_entry()? {
                    attributes.push(attribute);
                }
                Ok(ShownKey(attributes))
            }
        }
        deserializer.deserialize_map(ShownAttributes)
    }
}

impl fmt::Debug for KeySecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySecrets").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
