//! Configuration errors: the file to change, and the fault.

use super::SecretError;
use crate::storage::StorageError;
use crate::tls::TlsError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tollgate_observe::audit::AuditError;
use tollgate_observe::record::RecordError;
use tollgate_observe::usage::UsageError;
use tollgate_policy::Diagnostic;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_tower::InvalidKeys;

/// A configuration that a server cannot run on.
#[derive(Debug)]
#[non_exhaustive]
pub struct ConfigError {
    /// The file to change.
    pub file: PathBuf,
    /// The fault.
    pub kind: ConfigErrorKind,
}

/// The fault of a configuration. Displays as `tollgate check` does, without the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigErrorKind {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(io::Error),
    /// The file has mistakes.
    #[error("the file has mistakes")]
    Invalid(Vec<Diagnostic>),
    /// Ratelimit files have mistakes.
    #[error("the file has mistakes")]
    Ratelimit(Vec<(PathBuf, Vec<Diagnostic>)>),
    /// The limits do not form a policy.
    #[error("{0}")]
    Policy(InvalidPolicy),
    /// A secret is unusable.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The audit log is not writable.
    #[error("{0}")]
    Audit(AuditError),
    /// The decision log or the access log is not writable.
    #[error("{0}")]
    Record(RecordError),
    /// The usage trail is not writable.
    #[error("{0}")]
    Usage(UsageError),
    /// The settings of the store are unusable.
    #[error("{0}")]
    Storage(StorageError),
    /// The settings of TLS are unusable.
    #[error("{0}")]
    Tls(TlsError),
    /// The keys of `jwt` are unusable.
    #[error("{0}")]
    Keys(InvalidKeys),
    /// A reload would remove all limits, this many, and the file does not have `limits: []`.
    #[error(
        "the file has no `limits`, and {} {} in force; to remove them all, write `limits: []`",
        .0, if *.0 == 1 { "is" } else { "are" }
    )]
    LimitsRemoved(usize),
    /// The policy at this path names the file. The diagnostic has the position and the fault.
    #[error("the file has mistakes")]
    NamedFile(PathBuf, Box<Diagnostic>),
}

impl ConfigErrorKind {
    /// Makes this an error of `file`.
    pub(crate) fn of(self, file: impl Into<PathBuf>) -> ConfigError {
        ConfigError { file: file.into(), kind: self }
    }
}

impl ConfigError {
    pub(crate) fn unreadable(file: &Path, error: io::Error) -> Self {
        ConfigErrorKind::Unreadable(error).of(file)
    }

    /// Whether the file is readable but has to change.
    pub const fn is_invalid(&self) -> bool {
        !matches!(
            self.kind,
            ConfigErrorKind::Unreadable(_)
                | ConfigErrorKind::Secret(_)
                | ConfigErrorKind::Audit(_)
                | ConfigErrorKind::Record(_)
                | ConfigErrorKind::Usage(_)
                | ConfigErrorKind::Storage(_)
                | ConfigErrorKind::Tls(_)
        )
    }
}

impl fmt::Display for ConfigError {
    /// Formats as `tollgate check` does: a line for each finding, and its help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        let all = |file: &Path, all: &[Diagnostic]| {
            let file = file.display().to_string();
            all.iter().map(|one| one.render(&file).to_string()).collect::<String>()
        };
        let text = match &self.kind {
            ConfigErrorKind::Unreadable(error) => return write!(f, "cannot read {file}: {error}"),
            ConfigErrorKind::Invalid(diagnostics) => all(&self.file, diagnostics),
            ConfigErrorKind::Ratelimit(files) => {
                files.iter().map(|(file, diagnostics)| all(file, diagnostics)).collect()
            }
            ConfigErrorKind::NamedFile(policy, one) => all(policy, std::slice::from_ref(one)),
            kind => return write!(f, "{file}: {kind}"),
        };
        f.write_str(text.trim_end())
    }
}

impl std::error::Error for ConfigError {}
