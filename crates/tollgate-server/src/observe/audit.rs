//! The audit log: one line of JSON for each change that somebody makes through the admin API.
//!
//! A line is written before its change is made, and a change whose line cannot be written is not
//! made: there may be a line for a change that then failed, which another line with `error` says,
//! but there is no change without a line. The file is opened for each line, so that it can be
//! rotated by renaming it, and written to with one call in append mode, so that lines of several
//! processes do not mix.

use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where lines go.
#[derive(Clone, Debug, Default)]
pub enum AuditLog {
    /// To standard error, beside the log, whatever the log's level.
    #[default]
    Stderr,
    /// To the end of a file, which only its owner may read.
    File(PathBuf),
}

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct AuditEntry<'a> {
    /// When, in RFC 3339 to the microsecond.
    pub time: String,
    /// Who.
    pub who: AuditActor,
    /// What: the name of the operation.
    pub what: &'a str,
    /// What of: a limit, the attributes of a key.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub target: Value,
    /// What was there.
    pub before: Value,
    /// What is there from now on.
    pub after: Value,
    /// Why it was not done after all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Who made a change, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditActor {
    /// The address they came from.
    pub peer: String,
    /// Which token they showed: the beginning of its hash, never the token.
    pub token: String,
}

/// A line that could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub struct AuditError {
    /// The file, if it is one.
    pub path: Option<PathBuf>,
    /// What the system said.
    pub source: io::Error,
}

impl AuditLog {
    /// A log in the file at `path`, once that is known to take lines.
    ///
    /// # Errors
    ///
    /// When the file can neither be opened nor made.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, AuditError> {
        let path = path.into();
        open(&path).map_err(|source| AuditError { path: Some(path.clone()), source })?;
        Ok(Self::File(path))
    }

    /// Writes one line. This waits for the file system, so it is not for a thread that serves.
    ///
    /// # Errors
    ///
    /// When not all of the line was written. What is then in the file is not a line, and the next
    /// one does not continue it.
    pub fn write(&self, entry: &AuditEntry<'_>) -> Result<(), AuditError> {
        let written = serde_json::to_vec(entry).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            match self {
                Self::Stderr => io::stderr().lock().write_all(&line),
                Self::File(path) => {
                    if ends_mid_line(path) {
                        line.insert(0, b'\n');
                    }
                    write_line(&mut open(path)?, &line)
                }
            }
        });
        written.map_err(|source| AuditError { path: self.path().map(Path::to_owned), source })
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stderr => None,
            Self::File(path) => Some(path),
        }
    }
}

/// One call, since what a second one adds could stand behind somebody else's line.
fn write_line(file: &mut File, line: &[u8]) -> io::Result<()> {
    match file.write(line)? {
        written if written == line.len() => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::WriteZero, "only part of the line was written")),
    }
}

/// Whether a line in the file was cut off, by a full disk or an end of the process.
fn ends_mid_line(path: &Path) -> bool {
    let last = || -> io::Result<Option<u8>> {
        // What is not a file has no end to look at, and a pipe would wait for somebody to look.
        if !path.metadata()?.is_file() {
            return Ok(None);
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        Ok(Some(byte[0]))
    };
    // An empty file has no last byte either, and one that cannot be read is as good as any.
    matches!(last(), Ok(Some(byte)) if byte != b'\n')
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
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
