//! Whom the front end lets in: whoever knows the password, where there is one.

use arc_swap::ArcSwapOption;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tollgate_policy::settings::{Secret, SecretSource};

/// The password in force, if any; a reload changes it for those who come later.
#[derive(Debug, Default)]
pub struct RespAuth(ArcSwapOption<RespPassword>);

/// The password, kept as its hash: what is compared has one length, and a core dump does not hold
/// it twice.
#[derive(Clone)]
pub struct RespPassword([u8; 32]);

/// The environment variable that the password is said to be in is not set, empty or not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RespPasswordError(Box<str>);

impl RespAuth {
    /// From now on this has to be said first; `None`: nothing has.
    pub fn set_password(&self, password: Option<RespPassword>) {
        self.0.store(password.map(Arc::new));
    }

    /// Whether something has to be said first.
    pub(super) fn requires_password(&self) -> bool {
        self.0.load().is_some()
    }

    /// Whether this is it. Nothing is, where nothing has to be said.
    pub(super) fn is_password(&self, said: &[u8]) -> bool {
        self.0.load().as_ref().is_some_and(|password| password.matches(said))
    }
}

impl RespPassword {
    /// Any bytes but none.
    pub fn new(password: &[u8]) -> Option<Self> {
        (!password.is_empty()).then(|| Self(Sha256::digest(password).into()))
    }

    /// The password that the file names, looked for where it says.
    ///
    /// # Errors
    ///
    /// When the variable is not set or not text.
    pub fn resolve(
        secret: &Secret,
        variable: impl FnOnce(&str) -> Option<OsString>,
    ) -> Result<Self, RespPasswordError> {
        match secret.expose() {
            SecretSource::Literal(text) => {
                Self::new(text.as_bytes()).ok_or_else(|| RespPasswordError("".into()))
            }
            SecretSource::Env(name) => {
                let value = variable(name).and_then(|value| value.into_string().ok());
                // Files that variables are set from like to end in a newline.
                let value = value.unwrap_or_default();
                let value = value.trim_end_matches(['\r', '\n']);
                Self::new(value.as_bytes()).ok_or_else(|| RespPasswordError(name.clone()))
            }
        }
    }

    /// In a time that does not depend on how much of it is right.
    fn matches(&self, said: &[u8]) -> bool {
        let said: [u8; 32] = Sha256::digest(said).into();
        self.0.ct_eq(&said).into()
    }
}

impl fmt::Debug for RespPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl fmt::Display for RespPasswordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`resp.password` is said to be in the environment variable {}, which is not set; set it, or change the field",
            self.0
        )
    }
}

impl std::error::Error for RespPasswordError {}

#[cfg(test)]
mod tests;
