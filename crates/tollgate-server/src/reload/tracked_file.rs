//! A file whose content is in force.

use super::poll::WatchedFile;
use crate::config::ConfigError;
use std::path::{Path, PathBuf};

/// A file, its content in force, and whether a later content was rejected.
pub(super) struct TrackedFile {
    file: WatchedFile,
    pub(super) applied_bytes: Vec<u8>,
    pub(super) is_rejected: bool,
}

impl TrackedFile {
    pub(super) fn new(path: &Path, applied_bytes: Vec<u8>) -> Self {
        Self { file: WatchedFile::new(path), applied_bytes, is_rejected: false }
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Tracks the file that the policy now names: another one, the same one, or none.
    pub(super) fn track(tracked: &mut Option<Self>, file: Option<(PathBuf, Vec<u8>)>) {
        match (tracked, file) {
            (Some(tracked), Some((path, bytes))) if tracked.path() == path => tracked.accept(bytes),
            (tracked, file) => *tracked = file.map(|(path, bytes)| Self::new(&path, bytes)),
        }
    }

    pub(super) fn accept(&mut self, bytes: Vec<u8>) {
        (self.applied_bytes, self.is_rejected) = (bytes, false);
    }

    /// The new content, if any. Ignores a file that was only touched, and one that was restored
    /// before its change was rejected.
    pub(super) fn poll(&mut self) -> Option<Result<Vec<u8>, ConfigError>> {
        let found = self.file.poll()?;
        let is_same = found.as_ref().is_ok_and(|bytes| *bytes == self.applied_bytes);
        let found = found.map_err(|error| ConfigError::unreadable(self.path(), error));
        (!is_same || self.is_rejected).then_some(found)
    }
}
