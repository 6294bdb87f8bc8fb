//! Access to the admin API: the token and the hosts that a file names.

use crate::config::{ConfigErrorKind, SecretDigest, SecretError, resolve_secret};
use crate::front::browser::AllowedHosts;
use std::ffi::OsString;
use tollgate_policy::settings::Settings;

const TOKEN: &str = "admin.token";

/// The clients that may use the admin API.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Without a token every call is refused.
    pub(super) token: Option<SecretDigest>,
    /// The names by which clients may call it.
    pub(super) hosts: AllowedHosts,
}

impl Access {
    /// Access by `settings`.
    ///
    /// # Errors
    ///
    /// When the environment variable with the token is not set, or no client could send the token.
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

/// The digest of a token that a header can carry: visible ASCII characters.
fn digest(token: &str) -> Result<SecretDigest, SecretError> {
    let is_sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_sendable {
        Ok(SecretDigest::new(token.as_bytes()))
    } else {
        Err(SecretError::Unsendable(TOKEN))
    }
}

/// The token in an `Authorization` header with the scheme `Bearer`.
pub(super) fn bearer_token(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests;
