//! The chain of usage files: `usage.jsonl` is current; older files have a time in their name.
//!
//! Each file names the previous file and its hash, so a missing, truncated or changed file is
//! noticed.

use super::format::{GapLine, PreviousFile, UsageHeader, UsageLine};
use crate::append::open_append;
use crate::time::rfc3339;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use tollgate_policy::hex;

/// The current file, with its running hash.
#[derive(Debug)]
pub(super) struct ChainFile {
    pub(super) path: PathBuf,
    file: File,
    hash: Sha256,
    pub(super) bytes: u64,
    pub(super) started_us: u64,
    /// The rows of complete intervals in the file.
    pub(super) rows: u64,
    node: String,
    every_s: u64,
}

/// A file of this process that is no longer at its path.
#[derive(Debug)]
pub(super) struct MovedFile {
    /// Whether no path leads to the file.
    pub(super) is_removed: bool,
    pub(super) started_us: u64,
    pub(super) rows: u64,
}

/// The state in which an earlier process left its file.
#[derive(Debug, Default)]
pub(super) struct EarlierFile {
    header: Option<UsageHeader>,
    sha256: String,
    /// The end of the last complete interval.
    last_end: Option<String>,
    /// Whether the process shut down cleanly.
    pub(super) is_stopped: bool,
}

impl ChainFile {
    /// Starts a new file at the path. An existing file becomes the previous file of the chain.
    pub(super) fn begin(
        path: &Path,
        every_s: u64,
        now_us: u64,
    ) -> io::Result<(Self, Option<EarlierFile>)> {
        let next = with_suffix(path, ".new");
        // The last process ended between the two renames below.
        if next.exists() && !path.exists() {
            fs::rename(&next, path)?;
        }
        let earlier = match File::open(path) {
            Ok(file) if file.metadata()?.len() > 0 => {
                // Two processes would break each other's chain.
                file.try_lock().map_err(io::Error::from)?;
                Some(EarlierFile::read(file)?)
            }
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let header = earlier.as_ref().and_then(|earlier| earlier.header.clone());
        let node = match header {
            Some(header) => header.node,
            None => new_node_id()?,
        };
        let sha256 = earlier.as_ref().map(|earlier| earlier.sha256.clone());
        let file = Self::create(path, node, every_s, now_us, sha256)?;
        Ok((file, earlier))
    }

    /// Closes this file and starts the next one.
    pub(super) fn rotate(&mut self, now_us: u64) -> io::Result<()> {
        let before = self.mark();
        self.append(&[UsageLine::Closed { closed: rfc3339(now_us) }])?;
        self.start_next(now_us, before)
    }

    /// Starts the next file. On failure this file goes on from the mark: nothing may follow its
    /// last line.
    fn start_next(&mut self, now_us: u64, before: (u64, Sha256)) -> io::Result<()> {
        let (node, sha256) = (self.node.clone(), Some(self.sha256()));
        match Self::create(&self.path, node, self.every_s, now_us, sha256) {
            Ok(next) => *self = next,
            Err(error) => {
                self.undo(before);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Starts the next file if the path no longer leads to this one. Returns this file then.
    pub(super) fn follow_moved(&mut self, now_us: u64) -> io::Result<Option<MovedFile>> {
        let Some(is_removed) = self.file_moved()? else { return Ok(None) };
        let before = self.mark();
        if !is_removed {
            self.append(&[UsageLine::Closed { closed: rfc3339(now_us) }])?;
        }
        let moved = MovedFile { is_removed, started_us: self.started_us, rows: self.rows };
        self.start_next(now_us, before)?;
        Ok(Some(moved))
    }

    /// Whether the file was removed (true) or renamed (false); `None` if it is at its path.
    #[cfg(unix)]
    fn file_moved(&self) -> io::Result<Option<bool>> {
        use std::os::unix::fs::MetadataExt;
        let open = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => Ok(None),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Some(open.nlink() == 0)),
        }
    }

    /// Other systems do not remove or rename a file that is open.
    #[cfg(not(unix))]
    fn file_moved(&self) -> io::Result<Option<bool>> {
        Ok(None)
    }

    /// Creates the next file under a temporary name, then renames both files.
    fn create(
        path: &Path,
        node: String,
        every_s: u64,
        now_us: u64,
        sha256: Option<String>,
    ) -> io::Result<Self> {
        let next = with_suffix(path, ".new");
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let archive = sha256.as_ref().map(|_| archive_name(path, now_us));
        let name = |path: &PathBuf| {
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let previous = archive.as_ref().map(name).zip(sha256);
        let previous = previous.map(|(file, sha256)| PreviousFile { file, sha256 });
        let header = UsageHeader {
            tollgate_usage: super::format::FORMAT,
            node: node.clone(),
            started: rfc3339(now_us),
            every: every_s,
            previous,
        };
        let mut file = Self {
            path: path.into(),
            file: open_append(&next)?,
            hash: Sha256::new(),
            bytes: 0,
            started_us: now_us,
            rows: 0,
            node,
            every_s,
        };
        file.append(&[UsageLine::Header(header)])?;
        file.sync()?;
        // An operator may have removed the file.
        if let Some(archive) = archive.filter(|_| path.exists()) {
            fs::rename(path, archive)?;
        }
        fs::rename(&next, path)?;
        file.file.try_lock().map_err(io::Error::from)?;
        Ok(file)
    }

    /// Appends all lines or none.
    pub(super) fn append(&mut self, lines: &[UsageLine]) -> io::Result<()> {
        let mut block = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut block, line)?;
            block.push(b'\n');
        }
        self.append_block(&block)
    }

    /// The SHA-256 of the file so far.
    pub(super) fn sha256(&self) -> String {
        hex::lower(&self.hash.clone().finalize())
    }

    /// Appends whole lines, all or none.
    pub(super) fn append_block(&mut self, block: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(block) {
            // The lines are written again later: a partial block would be counted twice.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += block.len() as u64;
        self.hash.update(block);
        Ok(())
    }

    /// The state to restore if the next lines cannot all be written.
    pub(super) fn mark(&self) -> (u64, Sha256) {
        (self.bytes, self.hash.clone())
    }

    /// Removes the lines after a mark.
    pub(super) fn undo(&mut self, (bytes, hash): (u64, Sha256)) {
        // A device has no length. A regular file can be truncated even on a full disk.
        let _ = self.file.set_len(bytes);
        (self.bytes, self.hash) = (bytes, hash);
    }

    /// Forces the file to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        match self.file.sync_data() {
            // A pipe or a device cannot be synced.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    }
}

impl EarlierFile {
    fn read(file: File) -> io::Result<Self> {
        let (mut reader, mut line) = (BufReader::with_capacity(1 << 16, file), Vec::new());
        let (mut hash, mut earlier) = (Sha256::new(), Self::default());
        while reader.read_until(b'\n', &mut line)? > 0 {
            hash.update(&line);
            match serde_json::from_slice(&line) {
                Ok(UsageLine::Header(header)) => earlier.header = Some(header),
                Ok(UsageLine::End { end, .. }) => earlier.last_end = Some(end),
                Ok(UsageLine::Stopped { .. } | UsageLine::Closed { .. }) => {
                    earlier.is_stopped = true;
                }
                _ => {}
            }
            line.clear();
        }
        earlier.sha256 = hex::lower(&hash.finalize());
        Ok(earlier)
    }

    /// The last time in the file: the end of its last interval, or its start.
    pub(super) fn last_time(&self) -> Option<&str> {
        let started = || self.header.as_ref().map(|header| &*header.started);
        self.last_end.as_deref().or_else(started)
    }

    /// The line that reports the units lost in a crash. If the clock was ahead, it has no start.
    pub(super) fn crash_gap(&self, now_us: u64) -> GapLine {
        let (last, to) = (self.last_time(), rfc3339(now_us));
        let from = last.filter(|last| **last <= *to).map(Into::into);
        GapLine { from, to, reason: "the process did not end in order".into() }
    }
}

/// An unused file name, such as `usage-20261116T235300Z.jsonl`.
fn archive_name(path: &Path, now_us: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| extension.to_string_lossy());
    let extension = extension.map(|extension| format!(".{extension}")).unwrap_or_default();
    let time: String = rfc3339(now_us).chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let time = time.split('.').next().unwrap_or_default();
    let name = |more: &str| path.with_file_name(format!("{stem}-{time}Z{more}{extension}"));
    let free = |candidate: &PathBuf| !candidate.exists();
    let first = name("");
    if free(&first) {
        return first;
    }
    (2..=10_000).map(|number| name(&format!("-{number}"))).find(free).unwrap_or(first)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn new_node_id() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex::lower(&bytes))
}

#[cfg(test)]
impl ChainFile {
    pub(super) fn replace_handle(&mut self, file: File) {
        self.file = file;
    }
}
