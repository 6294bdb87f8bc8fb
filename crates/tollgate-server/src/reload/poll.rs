//! Polls files: detects new content, written in place, renamed, or behind a swapped symlink.
//!
//! A poll is one `stat` of the path, so it does not matter how the content got there. [`Watcher`]
//! processes the result of each poll, without a clock or a file; [`WatchedFile`] polls.
//! `docs/decisions/0007-looking-instead-of-listening.md` explains why nothing listens for events.

#[cfg(test)]
mod tests;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The identity of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The file system.
    pub device: u64,
    /// The file.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last write, in seconds and nanoseconds. A writer can set it.
    pub modified: (i64, i64),
    /// The time of the last change, in seconds and nanoseconds. No program can set it.
    pub changed: (i64, i64),
}

/// A change that has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// New content.
    Content(Stamp),
    /// The file is gone.
    Gone,
}

/// The interval of polls.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time for which content must stay unchanged before it is read.
const SETTLE_TIME: Duration = Duration::from_millis(300);
/// Equal polls in a row that span [`SETTLE_TIME`], even if the first poll was late.
const POLLS_SETTLED: u32 = (SETTLE_TIME.as_millis() / POLL_INTERVAL.as_millis()) as u32 + 2;

/// Decides which content of a file to report.
///
/// A half-written file can be valid, so new content counts only after it stays unchanged for 300
/// ms. That holds for a new file too: an upload may remove the old file first. By then the stamp is
/// also older than the resolution of the file system's clock, so a write after the read changes the
/// stamp.
#[derive(Clone, Debug, Default)]
pub struct Watcher {
    reported: Option<Option<Stamp>>,
    last_seen: Option<Option<Stamp>>,
    /// The number of polls in a row with `last_seen`.
    polls_unchanged: u32,
}

impl Watcher {
    /// Processes a poll; `None` means that there is no file.
    pub fn poll(&mut self, stamp: Option<Stamp>) -> Option<FileChange> {
        let unchanged = self.last_seen.replace(stamp) == Some(stamp);
        self.polls_unchanged = if unchanged { self.polls_unchanged.saturating_add(1) } else { 1 };
        if self.reported == Some(stamp) || self.polls_unchanged < POLLS_SETTLED {
            return None;
        }
        self.reported = Some(stamp);
        Some(stamp.map_or(FileChange::Gone, FileChange::Content))
    }
}

/// Limit of bytes read. The policy refuses a file of one byte less, so truncation is never
/// unnoticed.
pub const BYTES_MAX: u64 = (16 << 20) + 1;

/// A file that is polled.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    watcher: Watcher,
}

impl WatchedFile {
    /// Polls the file at `path`, which need not exist yet. The first content is reported too, once
    /// it has settled.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), watcher: Watcher::default() }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Polls once. Returns new content that has settled.
    pub fn poll(&mut self) -> Option<io::Result<Vec<u8>>> {
        let (found, why) = match std::fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_file() => (Some(Stamp::of(&metadata)), None),
            // Opening a pipe would wait for a writer.
            Ok(_) => (None, Some(io::Error::other("it is not a regular file"))),
            Err(error) => (None, Some(error)),
        };
        match self.watcher.poll(found)? {
            FileChange::Gone => Some(Err(why.unwrap_or_else(|| io::ErrorKind::NotFound.into()))),
            FileChange::Content(stamp) => match read_if_unchanged(&self.path, stamp) {
                Ok(Some(bytes)) => Some(Ok(bytes)),
                // The file changed during the read: later polls will report it.
                Ok(None) => {
                    self.watcher = Watcher::default();
                    None
                }
                Err(error) => Some(Err(error)),
            },
        }
    }
}

/// The content of the file, up to [`BYTES_MAX`] bytes.
pub(crate) fn read_capped(path: &Path) -> io::Result<Vec<u8>> {
    read_file_capped(&File::open(path)?)
}

fn read_file_capped(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The content with this stamp; `None` if the file changed.
fn read_if_unchanged(path: &Path, stamp: Stamp) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let bytes = read_file_capped(&file)?;
    Ok((Stamp::of(&file.metadata()?) == stamp).then_some(bytes))
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
