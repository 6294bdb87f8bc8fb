//! Parts that `simulate`, `replay`, `compare` and `suggest` share: a policy over memory, requests
//! of a log, counts over time and by key, and pictures.

mod input;
pub(in crate::command) mod keys;
mod logs;
pub(in crate::command) mod plot;
mod policy;
mod progress;
mod request;

pub(in crate::command) use input::{input_notes, input_status, require_requests};
pub(in crate::command) use logs::{LogArguments, OutputForm};
pub(in crate::command) use policy::{Loaded, load, load_text};
pub(in crate::command) use progress::Progress;
pub(in crate::command) use request::{RequestReader, ambiguous_note, is_in_log, wanted};

use super::{FILE, UNUSABLE, has_directory_entry};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The reason why a run ended early.
pub(in crate::command) enum Stop {
    /// A file cannot be read or written.
    Unusable(String),
    /// A file or a line has errors.
    Failed(String),
    /// The reader of the output has gone.
    Unread,
}

/// Prints why a run stopped, and returns its status; `failed` is the status for errors in a file.
pub(in crate::command) fn exit_code(result: Result<ExitCode, Stop>, failed: u8) -> ExitCode {
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

/// Returns the path of the policy: the given one, or the default of `check` and `serve`.
pub(in crate::command) fn config(named: Option<&Path>) -> Result<&Path, Stop> {
    match named {
        Some(config) => Ok(config),
        None if has_directory_entry(Path::new(FILE)) => Ok(Path::new(FILE)),
        None => {
            let hint = "name the policy: with --config, or for `compare` as the first file";
            Err(Stop::Unusable(format!("there is no ./{FILE} here; {hint}")))
        }
    }
}

pub(in crate::command) fn unreadable(path: &Path, error: &io::Error) -> Stop {
    Stop::Unusable(format!("cannot read {}: {error}", path.display()))
}

pub(in crate::command) fn unwritable(path: &Path, error: &io::Error) -> Stop {
    Stop::Unusable(format!("cannot write {}: {error}", path.display()))
}

/// The name of a file without its folders, for the title of a picture.
pub(in crate::command) fn file_name(path: &Path) -> String {
    match path.file_name() {
        Some(name) if path.as_os_str() != "-" => name.to_string_lossy().into_owned(),
        _ => "standard input".into(),
    }
}
