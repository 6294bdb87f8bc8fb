//! What the process around a node does for the admin API.

use crate::audit::{AuditError, AuditLog};
use crate::front::admin::{AdminToken, AdminTokenError};
use crate::front::page::AllowedHosts;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use tollgate_policy::Diagnostic;
use tollgate_policy::settings::Settings;

/// What the process around a node can do and tell. The calls may wait for the file system.
pub trait PolicyControl: Send + Sync + 'static {
    /// Reads the policy file again and puts it in force.
    ///
    /// # Errors
    ///
    /// When the file is bad; then the last good one stays.
    fn reload(&self) -> Result<(), ReloadFailure>;

    /// Where the policy is from.
    fn policy_origin(&self) -> PolicyOrigin;
}

/// Where the policy in force is from.
#[derive(Clone, Debug, Default)]
pub struct PolicyOrigin {
    /// The file; none for the built-in policy.
    pub file: Option<PathBuf>,
    /// The last reload, if there was one.
    pub last_reload: Option<LastReload>,
}

/// A reload, good or bad.
#[derive(Clone, Debug)]
pub struct LastReload {
    /// When, in microseconds since 1970.
    pub time_us: u64,
    /// Why the file was refused; none when it is in force.
    pub error: Option<String>,
}

/// Why a file was not put in force.
#[derive(Clone, Debug, Default)]
pub struct ReloadFailure {
    /// In one line.
    pub message: String,
    /// What is wrong with the file, where it could be read.
    pub diagnostics: Vec<Diagnostic>,
}

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

impl fmt::Display for ReloadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReloadFailure {}
