//! What the process around a node does for the admin API.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use tollgate_policy::Diagnostic;

/// What the process around a node can do.
pub trait PolicyControl: Send + Sync + 'static {
    /// Reads the policy file again and puts it in force.
    ///
    /// # Errors
    ///
    /// When the file is bad. The last good one then stays in force.
    fn reload(&self) -> Pin<Box<dyn Future<Output = Result<(), ReloadFailure>> + Send + '_>>;

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

impl fmt::Display for ReloadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReloadFailure {}
