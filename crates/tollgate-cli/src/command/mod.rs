//! The commands: each file has the arguments and the `run` of one command.

pub(crate) mod admin;
pub(crate) mod check;
pub(crate) mod choose;
pub(crate) mod compare;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod hash;
pub(crate) mod import;
mod lab;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod suggest;
mod table;
pub(crate) mod tail;
pub(crate) mod top;
pub(crate) mod usage;

use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The default policy file.
pub(crate) const FILE: &str = "tollgate.yaml";

/// The exit status if the command ran and found errors.
pub(crate) const FAILED: u8 = 1;
/// The exit status if the command could not run, or its arguments are bad.
pub(crate) const UNUSABLE: u8 = 2;

/// Whether a directory entry has this name. A dangling link or an unreadable file is meant to be
/// used, so it is an error and not a reason to use another file.
pub(crate) fn has_directory_entry(path: &Path) -> bool {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    !path.symlink_metadata().is_err_and(|error| missing(&error))
}

/// Returns the status, unless the output could not be written. A closed pipe is not an error.
pub(crate) fn exit_code_of(result: io::Result<()>, status: ExitCode) -> ExitCode {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("tollgate: cannot write: {error}");
            ExitCode::from(UNUSABLE)
        }
        _ => status,
    }
}
