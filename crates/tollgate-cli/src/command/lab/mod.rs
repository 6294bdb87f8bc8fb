//! Parts that `simulate`, `replay`, `compare` and `suggest` share: a policy over memory, requests
//! of a log, counts over time and by key, and pictures.

mod input;
pub(crate) mod keys;
mod logs;
pub(crate) mod plot;
mod policy;
mod progress;
mod request;

pub(crate) use input::{input_notes, input_status, read_requests};
pub(crate) use logs::{LogArguments, OutputForm};
pub(crate) use policy::{Loaded, load, load_text};
pub(crate) use progress::Progress;
pub(crate) use request::{RequestReader, ambiguous_note, is_in_log, wanted};

use super::{FILE, Stop, has_directory_entry};
use std::io;
use std::path::Path;

/// Returns the path of the policy: the given one, or the default of `check` and `serve`.
pub(crate) fn config(named: Option<&Path>) -> Result<&Path, Stop> {
    match named {
        Some(config) => Ok(config),
        None if has_directory_entry(Path::new(FILE)) => Ok(Path::new(FILE)),
        None => {
            let hint = "name the policy: with --config, or for `compare` as the first file";
            Err(Stop::Unusable(format!("there is no ./{FILE} here; {hint}")))
        }
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Stop {
    Stop::Unusable(format!("cannot read {}: {error}", path.display()))
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Stop {
    Stop::Unusable(format!("cannot write {}: {error}", path.display()))
}

/// The name of a file without its folders, for the title of a picture.
pub(crate) fn file_name(path: &Path) -> String {
    match path.file_name() {
        Some(name) if path.as_os_str() != "-" => name.to_string_lossy().into_owned(),
        _ => "standard input".into(),
    }
}
