//! Audit log: one line of JSON for each change through the admin API or by the fleet.
//!
//! Each line is written before its change. If the line cannot be written, the change is refused. A
//! failed change gets a second line with `error`. The file is reopened for each line, so it can be
//! rotated. Each line is one append-mode write, so lines of several processes do not mix.

use super::append::open_append;
use super::log;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tollgate_policy::settings::Settings;

/// The destination of the lines.
#[derive(Clone, Debug, Default)]
pub enum AuditLog {
    /// Standard error, at every log level.
    #[default]
    Stderr,
    /// A file that only its owner may read.
    File(PathBuf),
}

/// One line of the audit log.
#[derive(Clone, Debug, Serialize)]
pub struct AuditEntry<'a> {
    /// The time in RFC 3339, to the microsecond.
    pub time: String,
    /// The author of the change.
    pub who: AuditActor,
    /// The name of the operation.
    pub what: &'a str,
    /// A limit, or the attributes of a key.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub target: Value,
    /// The state before the change.
    pub before: Value,
    /// The state after the change.
    pub after: Value,
    /// Why the change failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditActor {
    /// The address of the client.
    pub peer: String,
    /// The fingerprint of the token.
    pub token: String,
}

/// A line that could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub struct AuditError {
    /// The audit file; `None` for standard error.
    pub path: Option<PathBuf>,
    /// The system's error.
    pub source: io::Error,
}

impl AuditLog {
    /// Creates the log that the settings name. A relative path starts in `folder`.
    ///
    /// # Errors
    ///
    /// When the file can neither be opened nor created.
    pub fn of(settings: &Settings, folder: &Path) -> Result<Self, AuditError> {
        match &settings.admin_audit {
            Some(file) => Self::file(folder.join(&**file)),
            None => Ok(Self::Stderr),
        }
    }

    /// Creates a log in the file at `path`. Opens the file once to check the path.
    ///
    /// # Errors
    ///
    /// When the file can neither be opened nor created.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, AuditError> {
        let path = path.into();
        open_append(&path).map_err(|source| AuditError { path: Some(path.clone()), source })?;
        Ok(Self::File(path))
    }

    /// Writes one line. This blocks on the file system, or up to a second on standard error.
    ///
    /// # Errors
    ///
    /// When the line was not written in time, or only in part. The next line starts on a new line.
    pub fn write(&self, entry: &AuditEntry<'_>) -> Result<(), AuditError> {
        let written = serde_json::to_vec(entry).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            match self {
                Self::Stderr => log::write_line(&line),
                Self::File(path) => {
                    if ends_mid_line(path) {
                        line.insert(0, b'\n');
                    }
                    write_line(&mut open_append(path)?, &line)
                }
            }
        });
        written.map_err(|source| AuditError { path: self.path().map(Path::to_owned), source })
    }

    /// The audit file; `None` for standard error.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stderr => None,
            Self::File(path) => Some(path),
        }
    }
}

/// Writes the line in one call: between two calls another process could write.
fn write_line(file: &mut File, line: &[u8]) -> io::Result<()> {
    match file.write(line)? {
        written if written == line.len() => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::WriteZero, "only part of the line was written")),
    }
}

/// Whether the last line of the file is incomplete, after a full disk or a crash.
fn ends_mid_line(path: &Path) -> bool {
    let last = || -> io::Result<Option<u8>> {
        // Seeking to the end of a pipe would block.
        if !path.metadata()?.is_file() {
            return Ok(None);
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        Ok(Some(byte[0]))
    };
    // An empty file has no last byte, and an unreadable one counts as complete.
    matches!(last(), Ok(Some(byte)) if byte != b'\n')
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(
                f,
                "the audit log {} cannot be written: {}; check the path and its rights, or change `admin.audit.file`",
                path.display(),
                self.source
            ),
            None => write!(f, "the audit log cannot be written to standard error: {}", self.source),
        }
    }
}

impl std::error::Error for AuditError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests;
