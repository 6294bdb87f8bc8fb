//! Secrets: in the policy file, or in an environment variable that the file names.

use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt;
use subtle::ConstantTimeEq;
use tollgate_policy::settings::{Secret, SecretSource};

/// A secret is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The environment variable is not set, empty or not text.
    #[error(
        "`{field}` names the environment variable {variable}, which is not set; set it, or change the field"
    )]
    Unset {
        /// The field that names the variable.
        field: &'static str,
        /// The variable.
        variable: Box<str>,
    },
    /// The secret has characters that a header cannot carry. Names the field of the secret.
    #[error(
        "the secret of `{0}` has spaces or characters outside ASCII, so no client could send it"
    )]
    Unsendable(&'static str),
}

/// The SHA-256 of a secret. All digests have one length, so a comparison reveals nothing about the
/// secret.
#[derive(Clone)]
pub struct SecretDigest([u8; 32]);

/// Resolves the secret that `field` of the file contains or names, without line ends.
///
/// # Errors
///
/// When the variable is not set, empty or not text.
pub(crate) fn resolve(
    secret: &Secret,
    field: &'static str,
    variable: impl FnOnce(&str) -> Option<OsString>,
) -> Result<String, SecretError> {
    match secret.expose() {
        SecretSource::Literal(text) => Ok(text.to_string()),
        SecretSource::Env(name) => {
            let value = variable(name).and_then(|value| value.into_string().ok());
            // A variable that was set from a file often ends with a newline.
            let value = value.unwrap_or_default().trim_end_matches(['\r', '\n']).to_owned();
            let unset = || SecretError::Unset { field, variable: name.clone() };
            Some(value).filter(|value| !value.is_empty()).ok_or_else(unset)
        }
    }
}

impl SecretDigest {
    /// The digest of `secret`.
    pub fn new(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Whether `sent` is the secret. Takes constant time.
    pub(crate) fn matches(&self, sent: &[u8]) -> bool {
        self.0.ct_eq(&Self::new(sent).0).into()
    }

    /// A prefix of the digest: long enough to tell secrets apart, too short to find the secret.
    pub fn fingerprint(&self) -> String {
        let [a, b, c, d, ..] = self.0;
        format!("sha256:{a:02x}{b:02x}{c:02x}{d:02x}")
    }
}

impl fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

#[cfg(test)]
mod tests;
