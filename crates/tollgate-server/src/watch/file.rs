//! A file that is looked at.

use super::{FileChange, Stamp, Watcher};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
    pub(super) fn file_id(self) -> (u64, u64) {
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
