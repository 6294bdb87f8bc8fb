//! Access to the admin API: the token and the host names in the policy file.

use crate::config::{ConfigErrorKind, SecretDigest, SecretError, resolve_secret};
use crate::front::browser::AllowedHosts;
use std::ffi::OsString;
use tollgate_policy::settings::Settings;

const TOKEN: &str = "admin.token";

/// The clients that may use the admin API.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The token; without one, every call is refused.
    pub(super) token: Option<SecretDigest>,
    /// The host names that clients may use.
    pub(super) hosts: AllowedHosts,
}

impl Access {
    /// Creates the access rules from `settings`.
    ///
    /// # Errors
    ///
    /// When the token's environment variable is not set, or a header cannot carry the token.
    pub fn new(
        settings: &Settings,
        variable: impl FnOnce(&str) -> Option<OsString>,
    ) -> Result<Self, ConfigErrorKind> {
        let secret = settings.admin_token.as_ref();
        let token = secret.map(|secret| resolve_secret(secret, TOKEN, variable)).transpose()?;
        let token = token.map(|token| digest(token.trim())).transpose()?;
        Ok(Self { token, hosts: AllowedHosts::new(&settings.admin_hosts) })
    }
}

/// The digest of a token. The token must be visible ASCII, so that a header can carry it.
fn digest(token: &str) -> Result<SecretDigest, SecretError> {
    let is_sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_sendable {
        Ok(SecretDigest::new(token.as_bytes()))
    } else {
        Err(SecretError::Unsendable(TOKEN))
    }
}

/// The token in an `Authorization: Bearer` header.
pub(super) fn bearer_token(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests;
