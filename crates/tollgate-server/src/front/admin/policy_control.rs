//! Operations of the process that the admin API can call.

use std::path::PathBuf;
use std::pin::Pin;
use tollgate_policy::Diagnostic;

/// Operations of the process around a node.
pub trait PolicyControl: Send + Sync + 'static {
    /// Reloads the policy file and puts it in force.
    ///
    /// # Errors
    ///
    /// When the file is bad. The last good one stays in force.
    fn reload(&self) -> Pin<Box<dyn Future<Output = Result<(), ReloadFailure>> + Send + '_>>;

    /// The origin of the policy.
    fn policy_origin(&self) -> PolicyOrigin;
}

/// The origin of the policy in force.
#[derive(Clone, Debug, Default)]
pub struct PolicyOrigin {
    /// The file; `None` for the built-in policy.
    pub file: Option<PathBuf>,
    /// The last reload, if there was one.
    pub last_reload: Option<LastReload>,
}

/// A reload, successful or not.
#[derive(Clone, Debug)]
pub struct LastReload {
    /// The time, in microseconds since 1970.
    pub time_us: u64,
    /// The reason why the file was refused; `None` if it is in force.
    pub error: Option<String>,
}

/// The reason why a file was not put in force.
#[derive(Clone, Debug, Default, thiserror::Error)]
#[error("{message}")]
pub struct ReloadFailure {
    /// The reason in one line.
    pub message: String,
    /// Faults of the file, if it was readable.
    pub diagnostics: Vec<Diagnostic>,
}
