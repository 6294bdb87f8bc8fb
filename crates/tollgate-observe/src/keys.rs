//! Keys as operators see them: in clear text if the policy allows it, otherwise hashed.
//!
//! A hash is `~` and 16 hexadecimal digits: HMAC-SHA-256 of an attribute's name and value. So a
//! user has one hash under all limits and on all nodes with the same secret. The secret is
//! `keys_secret`, else the secret in the shared store, else a random one of this process.

use arc_swap::ArcSwapOption;
use ring::hmac;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex};
use tollgate::StoreError;
use tollgate::engine::Rules;
use tollgate::store::redis::{RedisStore, SharedChange, SharedTable};
use tollgate_net::lock;
use tollgate_policy::hex;
use tollgate_policy::limit::{Limit, Selector};

/// The table in the shared store, and the name of the secret in that table.
const TABLE: &str = "keys";
const NAME: &str = "secret";
/// Digits of a hash: 64 bits.
const DIGITS: usize = 16;

/// The secrets that hash keys. The first one that is set is used.
#[derive(Default)]
pub struct KeySecrets {
    configured: ArcSwapOption<SecretBytes>,
    shared: ArcSwapOption<SecretBytes>,
    process: SecretBytes,
    /// The store's secret as last read; kept after the store loses the table.
    table: Mutex<SharedTable>,
}

struct SecretBytes([u8; 32]);

/// A key for display: attributes in clear text or hashed. Empty for a bucket that all requests
/// share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShownKey(pub Vec<(Box<str>, String)>);

impl Default for SecretBytes {
    fn default() -> Self {
        let mut bytes = [0; 32];
        // Random numbers are always available once the system has started.
        if let Err(error) = getrandom::fill(&mut bytes) {
            tracing::error!(%error, "the system has no random numbers; hashed keys are guessable");
        }
        Self(bytes)
    }
}

impl KeySecrets {
    /// Sets the secret of the file. With `None`, the secret of the store or the process is used.
    pub fn configure(&self, secret: Option<&str>) {
        let digest = |secret: &str| Arc::new(SecretBytes(Sha256::digest(secret).into()));
        self.configured.store(secret.map(digest));
    }

    /// The hash of an attribute's value.
    pub fn hash(&self, attribute: &str, value: &[u8]) -> String {
        let chosen = self.configured.load_full().or_else(|| self.shared.load_full());
        let secret = chosen.as_deref().unwrap_or(&self.process);
        // A name contains no zero byte, so two different pairs never hash the same text.
        let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &secret.0));
        [attribute.as_bytes(), &[0], value].iter().for_each(|part| mac.update(part));
        format!("~{}", hex::lower(&mac.sign().as_ref()[..DIGITS / 2]))
    }

    /// Returns a key for display. API keys, tokens and other secrets are always hashed.
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

    /// Returns one attribute of a key for display.
    pub fn show_value(&self, rules: &Rules, limit: &Limit, attribute: &str, value: &str) -> String {
        let is_secret = attribute == "api_key" || rules.http_policy().holds_secret(attribute);
        // A clear value that looks like a hash could be mistaken for another key's hash.
        let is_clear = limit.show_keys && !is_secret && !is_hash(value);
        if is_clear { value.to_owned() } else { self.hash(attribute, value.as_bytes()) }
    }
}

/// Whether a value of an attribute has the form of a hash.
pub fn is_hash(value: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = value.strip_prefix('~').unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(is_digit)
}

impl KeySecrets {
    /// Reads the secret that all nodes of the store share, and creates it if the store has none. If
    /// the store lost the secret, writes it again.
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
            let value = hex::lower(&SecretBytes::default().0);
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
        serializer.collect_map(self.0.iter().map(|(attribute, value)| (attribute, value)))
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
