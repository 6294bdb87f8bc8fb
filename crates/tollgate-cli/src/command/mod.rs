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

use std::io::{self, Write};
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

/// The word of a value in arguments, and in the admin API.
pub(crate) fn word(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().map(|word| word.get_name().to_owned()).unwrap_or_default()
}

/// The reason why a command ended early.
pub(crate) enum Stop {
    /// A file, a server or an argument is unusable.
    Unusable(String),
    /// A file or a line has errors.
    Failed(String),
    /// The reader of the output has gone.
    Unread,
}

/// An error that makes a command unusable.
impl<E: std::error::Error> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Unusable(error.to_string())
    }
}

impl Stop {
    /// The end of a command whose output cannot be written. A closed pipe is not an error.
    pub(crate) fn unwritten(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Unusable(format!("cannot write: {error}")),
        }
    }
}

/// Prints why a command stopped, and returns its status; `failed` is the status for errors in a
/// file.
pub(crate) fn exit_code(result: Result<ExitCode, Stop>, failed: u8) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(Stop::Unread) => ExitCode::SUCCESS,
        Err(Stop::Failed(message)) => {
            eprintln!("{message}");
            ExitCode::from(failed)
        }
        Err(Stop::Unusable(message)) => {
            eprintln!("tollgate: {message}");
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Prints the output of a command that ends with this status, even if nobody reads the output.
pub(crate) fn print(text: impl AsRef<[u8]>, status: u8) -> Result<ExitCode, Stop> {
    end_printed(io::stdout().lock().write_all(text.as_ref()), status)
}

/// The end of a command that has printed its output, or failed to.
pub(crate) fn end_printed(printed: io::Result<()>, status: u8) -> Result<ExitCode, Stop> {
    match printed.map_err(|error| Stop::unwritten(&error)) {
        Err(stop @ Stop::Unusable(_)) => Err(stop),
        _ => Ok(ExitCode::from(status)),
    }
}
