//! Notices that a file has other content: written in place, renamed over, or behind a symlink that
//! was swapped.
//!
//! A look is one `stat` of the path, links followed to the end, so it makes no difference how the
//! content came to be there. [`Watcher`] is told what each look saw and needs neither a clock nor a
//! file; [`WatchedFile`] does the looking. `docs/decisions/0007-looking-instead-of-listening.md`
//! says why nothing listens for events.

#[cfg(test)]
mod tests;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What tells one content of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which file system.
    pub device: u64,
    /// Which file on it.
    pub inode: u64,
    /// How many bytes.
    pub size: u64,
    /// When it was written last, in seconds and nanoseconds; whoever writes a file can set this.
    pub modified: (i64, i64),
    /// When anything about it changed, in seconds and nanoseconds; nobody can set this.
    pub changed: (i64, i64),
}

/// Something other than before is there now, and has been for long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// A file to read.
    Content(Stamp),
    /// Nothing.
    Gone,
}

/// How long to wait between two looks.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// In how many looks in a row another file must be the same.
const POLLS_REPLACED: u32 = 2;
/// In how many looks in a row the file that was handed over last must be the same, when it was
/// written to.
const POLLS_WRITTEN: u32 = 6;

/// Which content of a file was handed over, and which may be next.
///
/// A file that is being written has valid beginnings, so what is new counts only once later looks
/// find it the same: a quarter of a second for a file written in place, and one more look for
/// another file, which most often was complete before it got its name. That also makes a stamp
/// older than the grain of the file system's clock before anyone reads what it stands for: a write
/// after the reading leaves another stamp.
#[derive(Clone, Debug, Default)]
pub struct Watcher {
    reported: Option<Option<Stamp>>,
    /// The device and inode of the file that was handed over last, or was to be.
    last: Option<(u64, u64)>,
    last_seen: Option<Option<Stamp>>,
    /// How often in a row `seen` was seen.
    polls_unchanged: u32,
}

impl Watcher {
    /// Takes note of what a look saw: `None` is no file.
    pub fn poll(&mut self, stamp: Option<Stamp>) -> Option<FileChange> {
        let unchanged = self.last_seen.replace(stamp) == Some(stamp);
        self.polls_unchanged = if unchanged { self.polls_unchanged.saturating_add(1) } else { 1 };
        if self.reported == Some(stamp) || self.polls_unchanged < self.polls_needed(stamp) {
            return None;
        }
        self.reported = Some(stamp);
        self.last = stamp.map(Stamp::file_id);
        Some(stamp.map_or(FileChange::Gone, FileChange::Content))
    }

    fn polls_needed(&self, stamp: Option<Stamp>) -> u32 {
        let written_to = stamp.is_some() && stamp.map(Stamp::file_id) == self.last;
        if written_to { POLLS_WRITTEN } else { POLLS_REPLACED }
    }

    /// Forgets what was handed over last, since it could not be used: it will be handed over again.
    /// Whoever wrote to the file meanwhile may not be done, so it is looked at for as long as a
    /// file that is being written.
    pub fn retry(&mut self) {
        *self = Self { last: self.last, ..Self::default() };
    }
}

/// The largest file that is read; the policy refuses one that has a byte less, so a longer one is
/// never cut unnoticed.
pub const BYTES_MAX: u64 = (16 << 20) + 1;

/// A path and what was found there.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    watcher: Watcher,
}

impl WatchedFile {
    /// Watches whatever is at `path`, now or later. The first two looks hand over what is there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), watcher: Watcher::default() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks once; the content, when it is new and settled.
    pub fn poll(&mut self) -> Option<io::Result<Vec<u8>>> {
        let (found, why) = match std::fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_file() => (Some(Stamp::of(&metadata)), None),
            // Opening a pipe would wait for whoever writes to it.
            Ok(_) => (None, Some(io::Error::other("it is not a regular file"))),
            Err(error) => (None, Some(error)),
        };
        match self.watcher.poll(found)? {
            FileChange::Gone => Some(Err(why.unwrap_or_else(|| io::ErrorKind::NotFound.into()))),
            FileChange::Content(stamp) => match read_if_unchanged(&self.path, stamp) {
                Ok(Some(bytes)) => Some(Ok(bytes)),
                // It changed while it was read: the looks to come will say so.
                Ok(None) => {
                    self.watcher.retry();
                    None
                }
                Err(error) => Some(Err(error)),
            },
        }
    }
}

/// What is at `path`, up to [`BYTES_MAX`] bytes of it.
pub(crate) fn read_capped(path: &Path) -> io::Result<Vec<u8>> {
    read_file_capped(&File::open(path)?)
}

fn read_file_capped(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The content that `stamp` stands for, or `None` when that is no longer what is there.
fn read_if_unchanged(path: &Path, stamp: Stamp) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let bytes = read_file_capped(&file)?;
    Ok((Stamp::of(&file.metadata()?) == stamp).then_some(bytes))
}

impl Stamp {
    /// Which file it is of.
    fn file_id(self) -> (u64, u64) {
        (self.device, self.inode)
    }

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
