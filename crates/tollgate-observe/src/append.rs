//! Opens append-only files.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file for appending. A new file is readable by its owner only.
pub(crate) fn open_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Opening a pipe without a reader fails instead of blocking.
        options.mode(0o600).custom_flags(libc::O_NONBLOCK);
    }
    options.open(path)
}
