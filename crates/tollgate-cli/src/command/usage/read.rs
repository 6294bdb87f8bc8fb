//! Reads usage files, and checks that their chains are complete.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use tollgate_observe::time::parse_rfc3339;
use tollgate_observe::usage::{UsageHeader, UsageLine, UsageRow};
use tollgate_policy::hex;

/// The result of reading usage files.
#[derive(Debug, Default)]
pub(super) struct ReadUsage {
    /// The number of files, without duplicates.
    pub(super) files: usize,
    /// The number of nodes.
    pub(super) nodes: usize,
    pub(super) findings: Vec<UsageFinding>,
}

/// A problem in the usage files.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UsageFinding {
    /// The file was given twice.
    #[error("{}: the same file was given before; counted once", .0.display())]
    Copy(PathBuf),
    /// The file before this one is missing.
    #[error("{}: continues {previous}, which was not given", .file.display())]
    Missing { file: PathBuf, previous: String },
    /// The file before this one was changed.
    #[error("{}: {previous} was changed after this file began", .file.display())]
    Changed { file: PathBuf, previous: String },
    /// The number of rows in an interval differs from the number in its last line.
    #[error("{}:{line}: the interval has {found} rows, and the node wrote {counted}", .file.display())]
    Rows { file: PathBuf, line: usize, found: u64, counted: u64 },
    /// The lines above were changed after the node wrote them.
    #[error("{}:{line}: lines above were changed or removed", .file.display())]
    Edited { file: PathBuf, line: usize },
    /// A line is invalid.
    #[error("{}:{line}: not a line of a usage file; left out", .file.display())]
    Damaged { file: PathBuf, line: usize },
    /// Lines follow the last line of the process or of the file. None of them counts.
    #[error("{}:{line}: lines were added after the last line of the node; left out", .file.display())]
    AfterEnd { file: PathBuf, line: usize },
    /// Rows follow the last complete interval. None of them counts.
    #[error(
        "{}:{line}: {rows} rows are unsealed: no complete interval has them; left out{}",
        .file.display(),
        if *.is_open { ". The node may be writing them" } else { "" }
    )]
    Unsealed { file: PathBuf, line: usize, rows: u64, is_open: bool },
    /// The newest file of a chain has no last line.
    #[error(
        "{}: still open or cut off: it has no last line; counted up to {}",
        .file.display(),
        .last_end.as_deref().unwrap_or("its start")
    )]
    Open { file: PathBuf, last_end: Option<String> },
    /// Units of this time are missing.
    #[error("{}: units from {from} to {to} are missing: {reason}", .file.display())]
    Gap { file: PathBuf, from: String, to: String, reason: String },
}

/// The error for a file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum UsageFileError {
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    #[error(
        "{} is not a usage file: its first line has no `tollgate_usage`; give files that `usage.file` of a policy names",
        .0.display()
    )]
    NoUsageFile(PathBuf),
}

struct OpenedFile<'a> {
    path: &'a Path,
    header: UsageHeader,
    sha256: String,
    /// The number of the last line that ends an interval, or zero.
    last_seal: usize,
    /// The number of the line `stopped` or `closed`.
    last_line: Option<usize>,
}

impl ReadUsage {
    /// Reads the files, and calls `see` with each row and the start of its interval.
    pub(super) fn read(
        paths: &[PathBuf],
        mut see: impl FnMut(u64, &UsageRow),
    ) -> Result<Self, UsageFileError> {
        let mut read = Self::default();
        let mut opened: Vec<OpenedFile<'_>> = Vec::new();
        for path in paths {
            let file = OpenedFile::open(path)?;
            if opened.iter().any(|other| other.sha256 == file.sha256) {
                read.findings.push(UsageFinding::Copy(path.clone()));
            } else {
                opened.push(file);
            }
        }
        for file in &opened {
            read.findings.extend(file.check_previous(&opened));
            file.read_rows(file.is_open(&opened), &mut see, &mut read.findings)?;
        }
        read.files = opened.len();
        read.nodes = opened.iter().map(|file| &file.header.node).collect::<BTreeSet<_>>().len();
        Ok(read)
    }
}

impl<'a> OpenedFile<'a> {
    fn open(path: &'a Path) -> Result<Self, UsageFileError> {
        let (mut hash, mut header) = (Sha256::new(), None);
        let (mut last_seal, mut last_line) = (0, None);
        each_line(path, |number, line| {
            hash.update(line);
            // Most lines are rows: they are parsed once, in `read_rows`.
            if last_line.is_some() || (number > 1 && line.starts_with(b"{\"time\":")) {
                return;
            }
            match serde_json::from_slice(line) {
                Ok(UsageLine::Header(found)) if number == 1 => header = Some(found),
                Ok(UsageLine::End { .. }) => last_seal = number,
                Ok(UsageLine::Stopped { .. } | UsageLine::Closed { .. }) => {
                    last_line = Some(number);
                }
                _ => {}
            }
        })?;
        let header = header.ok_or_else(|| UsageFileError::NoUsageFile(path.into()))?;
        Ok(Self { path, header, sha256: hex::lower(&hash.finalize()), last_seal, last_line })
    }

    /// Whether a node may still write to the file: it has neither a last line nor a successor.
    fn is_open(&self, all: &[Self]) -> bool {
        let is_successor = |other: &Self| {
            other.header.node == self.header.node
                && other.header.previous.as_ref().is_some_and(|previous| {
                    previous.sha256 == self.sha256
                        || self.path.file_name().is_some_and(|name| *name == *previous.file)
                })
        };
        self.last_line.is_none() && !all.iter().any(is_successor)
    }

    /// Checks that the file before this one is present and unchanged.
    fn check_previous(&self, all: &[Self]) -> Option<UsageFinding> {
        let wanted = self.header.previous.as_ref()?;
        if all.iter().any(|other| other.sha256 == wanted.sha256) {
            return None;
        }
        let (file, previous) = (self.path.to_owned(), wanted.file.clone());
        let has_name = |other: &Self| {
            other.header.node == self.header.node
                && other.path.file_name().is_some_and(|name| *name == *wanted.file)
        };
        Some(if all.iter().any(has_name) {
            UsageFinding::Changed { file, previous }
        } else {
            UsageFinding::Missing { file, previous }
        })
    }

    /// Reports the rows of complete intervals, and all findings.
    fn read_rows(
        &self,
        is_open: bool,
        see: &mut impl FnMut(u64, &UsageRow),
        findings: &mut Vec<UsageFinding>,
    ) -> Result<(), UsageFileError> {
        let (mut rows, mut hash, mut is_edited) = (0, Sha256::new(), false);
        let (mut last_end, mut unsealed, mut has_hashes) = (None, None, false);
        let last_line = self.last_line.unwrap_or(usize::MAX);
        each_line(self.path, |line, bytes| {
            let file = || self.path.to_owned();
            let damaged = || UsageFinding::Damaged { file: file(), line };
            if line > last_line {
                if line == last_line + 1 {
                    findings.push(UsageFinding::AfterEnd { file: file(), line });
                }
                return;
            }
            match serde_json::from_slice(bytes) {
                // The last line may be one that the node is writing.
                Ok(UsageLine::Row(_)) | Err(_) if line > self.last_seal => {
                    unsealed.get_or_insert((line, 0)).1 += 1;
                }
                Ok(UsageLine::Row(row)) => {
                    rows += 1;
                    match parse_rfc3339(&row.time) {
                        Some(time_us) => see(time_us, &row),
                        None => findings.push(damaged()),
                    }
                }
                Ok(UsageLine::End { end, rows: counted, sha256 }) => {
                    last_end = Some(end);
                    let found = std::mem::take(&mut rows);
                    if found != counted {
                        findings.push(UsageFinding::Rows { file: file(), line, found, counted });
                    }
                    // Only files of an earlier version have no hashes at all.
                    has_hashes |= sha256.is_some();
                    let known = hex::lower(&hash.clone().finalize());
                    let is_same = sha256.map_or(!has_hashes, |sha256| sha256 == known);
                    // All later hashes differ too.
                    if !is_edited && !is_same {
                        is_edited = true;
                        findings.push(UsageFinding::Edited { file: file(), line });
                    }
                }
                Ok(UsageLine::Gap { gap }) => findings.push(UsageFinding::Gap {
                    file: self.path.into(),
                    from: gap.from.unwrap_or_else(|| "an unknown time".into()),
                    to: gap.to,
                    reason: gap.reason,
                }),
                Ok(_) => {}
                Err(_) => findings.push(damaged()),
            }
            hash.update(bytes);
        })?;
        let file = || self.path.to_owned();
        if let Some((line, rows)) = unsealed {
            findings.push(UsageFinding::Unsealed { file: file(), line, rows, is_open });
        }
        if is_open {
            findings.push(UsageFinding::Open { file: file(), last_end });
        }
        Ok(())
    }
}

/// Calls `see` with the number and the bytes of each line, including its end.
fn each_line(path: &Path, mut see: impl FnMut(usize, &[u8])) -> Result<(), UsageFileError> {
    let failed = |error| UsageFileError::Unreadable(path.into(), error);
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            break;
        }
        see(line, &bytes);
    }
    Ok(())
}

impl UsageFinding {
    /// Whether the report may be wrong.
    pub(super) fn is_error(&self) -> bool {
        !matches!(self, Self::Copy(_) | Self::Open { .. } | Self::Unsealed { is_open: true, .. })
    }
}
