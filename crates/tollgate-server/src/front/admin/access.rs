//! Who may use the admin API: whoever knows the token.

use crate::front::browser::AllowedHosts;
use crate::observe::audit::{AuditError, AuditLog};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use subtle::ConstantTimeEq;
use tollgate_policy::settings::{Secret, SecretSource, Settings};

/// The token, kept as its hash: what is compared has one length, and a core dump does not hold the
/// token twice.
#[derive(Clone)]
pub struct AdminToken {
    digest: [u8; 32],
}

/// A token that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdminTokenError {
    /// The environment variable it is said to be in is not set, or empty.
    Unset(Box<str>),
    /// It has spaces or characters that no header field can carry. The variable it is in, if it is
    /// in one.
    Unsendable(Option<Box<str>>),
}

impl AdminToken {
    /// The token that the file names, looked for where it says.
    ///
    /// # Errors
    ///
    /// When the variable is not set, or the token cannot be sent in a header field.
    pub fn resolve(
        secret: &Secret,
        variable: impl FnOnce(&str) -> Option<OsString>,
    ) -> Result<Self, AdminTokenError> {
        match secret.expose() {
            SecretSource::Literal(token) => {
                Self::new(token).ok_or(AdminTokenError::Unsendable(None))
            }
            SecretSource::Env(name) => {
                let value = variable(name).unwrap_or_default();
                if value.is_empty() {
                    return Err(AdminTokenError::Unset(name.clone()));
                }
                // Files that variables are set from like to end in a newline.
                let value = value.to_str().and_then(|value| Self::new(value.trim()));
                value.ok_or_else(|| AdminTokenError::Unsendable(Some(name.clone())))
            }
        }
    }

    /// A token; `None` unless it is of visible ASCII characters.
    pub fn new(token: &str) -> Option<Self> {
        let sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Self { digest: Sha256::digest(token.as_bytes()).into() })
    }

    /// Whether this is it, in a time that does not depend on how much of it is right.
    pub(super) fn matches(&self, sent: &[u8]) -> bool {
        let sent: [u8; 32] = Sha256::digest(sent).into();
        self.digest.ct_eq(&sent).into()
    }

    /// Enough of its hash to tell tokens apart, and too little to look the token up.
    pub fn fingerprint(&self) -> String {
        let [a, b, c, d, ..] = self.digest;
        format!("sha256:{a:02x}{b:02x}{c:02x}{d:02x}")
    }
}

/// What follows `Bearer` in an `Authorization` field.
pub(super) fn bearer_token(field: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = field.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

impl fmt::Display for AdminTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(name) => write!(
                f,
                "the environment variable {name}, which `admin.token` names, is not set; set it, or remove `admin.token` to turn the admin API off"
            ),
            Self::Unsendable(Some(name)) => write!(
                f,
                "the token in the environment variable {name} has spaces or characters outside ASCII, so no client could send it"
            ),
            Self::Unsendable(None) => f.write_str(
                "`admin.token` has spaces or characters outside ASCII, so no client could send it",
            ),
        }
    }
}

impl std::error::Error for AdminTokenError {}

/// Who may use the admin API, and where what they do is recorded: by one file's settings.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Nobody may without one.
    pub(super) token: Option<AdminToken>,
    pub(super) audit: AuditLog,
    /// The names by which clients may call it.
    pub(super) hosts: AllowedHosts,
}

/// Settings of `admin` that cannot be put in force.
#[derive(Debug)]
#[non_exhaustive]
pub enum AccessError {
    /// The token is not to be had.
    Token(AdminTokenError),
    /// The audit log cannot be written.
    Audit(AuditError),
}

impl Access {
    /// What `settings` say. A path in them starts in `beside`, the folder of the file they are
    /// from.
    ///
    /// # Errors
    ///
    /// When the environment variable with the token is not set, or the audit log cannot be opened.
    pub fn new(
        settings: &Settings,
        beside: &Path,
        variable: impl FnOnce(&str) -> Option<OsString>,
    ) -> Result<Self, AccessError> {
        let token = settings.admin_token.as_ref();
        let token = token.map(|secret| AdminToken::resolve(secret, variable)).transpose();
        let audit = match &settings.admin_audit {
            Some(file) => AuditLog::file(beside.join(&**file)).map_err(AccessError::Audit)?,
            None => AuditLog::Stderr,
        };
        let hosts = AllowedHosts::new(&settings.admin_hosts);
        Ok(Self { token: token.map_err(AccessError::Token)?, audit, hosts })
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(error) => error.fmt(f),
            Self::Audit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AccessError {}

#[cfg(test)]
mod tests;
