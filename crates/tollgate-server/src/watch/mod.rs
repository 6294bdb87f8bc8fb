//! Notices that a file has other content: written in place, renamed over, or behind a symlink that
//! was swapped.
//!
//! A look is one `stat` of the path, links followed to the end, so it makes no difference how the
//! content came to be there. [`Watcher`] is told what each look saw and needs neither a clock nor a
//! file; [`WatchedFile`] does the looking. `docs/decisions/0007-looking-instead-of-listening.md`
//! says why nothing listens for events.

mod file;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use file::read_capped;
pub use file::{BYTES_MAX, WatchedFile};

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
