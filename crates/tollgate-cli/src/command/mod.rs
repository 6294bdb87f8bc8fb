//! One file per command, each a set of arguments with `run`.

pub(crate) mod check;
pub(crate) mod schema;
pub(crate) mod simulate;

use std::io;
use std::process::ExitCode;

/// What was asked for was done, and it found errors.
pub(crate) const FAILED: u8 = 1;
/// What was asked for could not be done; bad arguments end with the same status.
pub(crate) const UNUSABLE: u8 = 2;

/// The status for output that could not be written. A reader that went away has seen enough.
pub(crate) fn written(result: io::Result<()>, status: ExitCode) -> ExitCode {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("tollgate: cannot write: {error}");
            ExitCode::from(UNUSABLE)
        }
        _ => status,
    }
}

/// What a bare `tollgate` says as long as there is no service to start.
pub(crate) const TRY: &str = "\
tollgate: serving is not part of this version yet. What to try meanwhile, in a checkout:

  tollgate simulate --config docs/pictures/algorithms.yaml --requests docs/pictures/bursty.jsonl
                                 what each algorithm answers to the same bursty traffic, a row a request
  tollgate check tollgate.yaml   whether a file says what you mean, with lints
  tollgate schema                the file's JSON Schema, for your editor
  tollgate --help                everything else
";
