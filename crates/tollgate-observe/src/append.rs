//! Files that are only appended to.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file to append to it, and creates it for its owner alone.
pub(crate) fn open_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe that nobody reads fails instead of blocking.
        options.mode(0o600).custom_flags(libc::O_NONBLOCK);
    }
    options.open(path)
}
