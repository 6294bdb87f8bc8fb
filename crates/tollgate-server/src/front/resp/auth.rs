//! Password of Redis clients.

use crate::config::SecretDigest;
use arc_swap::ArcSwapOption;
use std::sync::Arc;

/// The current password, if any. A reload changes it for new connections.
#[derive(Debug, Default)]
pub struct RespAuth(ArcSwapOption<SecretDigest>);

impl RespAuth {
    /// Sets the password; `None` requires none.
    pub fn set_password(&self, password: Option<SecretDigest>) {
        self.0.store(password.map(Arc::new));
    }

    pub(super) fn requires_password(&self) -> bool {
        self.0.load().is_some()
    }

    /// Whether `sent` is the password. False if no password is set.
    pub(super) fn is_password(&self, sent: &[u8]) -> bool {
        self.0.load().as_ref().is_some_and(|password| password.matches(sent))
    }
}

#[cfg(test)]
mod tests;
