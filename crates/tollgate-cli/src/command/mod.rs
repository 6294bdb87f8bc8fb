//! One file per command, each a set of arguments with `run`.

pub(crate) mod admin;
pub(crate) mod check;
pub(crate) mod generate;
pub(crate) mod hash;
pub(crate) mod import;
pub(crate) mod serve;
pub(crate) mod simulate;

use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The policy that commands take when none is named.
pub(crate) const FILE: &str = "tollgate.yaml";

/// What was asked for was done, and it found errors.
pub(crate) const FAILED: u8 = 1;
/// What was asked for could not be done; bad arguments end with the same status.
pub(crate) const UNUSABLE: u8 = 2;

/// Whether a directory entry has this name. A dangling link or an unreadable file was meant to be
/// used, so it is an error, not a reason to use another file.
pub(crate) fn has_directory_entry(path: &Path) -> bool {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    !path.symlink_metadata().is_err_and(|error| missing(&error))
}

/// The status for output that could not be written. A reader that went away has seen enough.
pub(crate) fn exit_code_of(result: io::Result<()>, status: ExitCode) -> ExitCode {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("tollgate: cannot write: {error}");
            ExitCode::from(UNUSABLE)
        }
        _ => status,
    }
}
