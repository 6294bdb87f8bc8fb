//! `tollgate schema`.

use super::written;
use std::io::{self, Write};
use std::process::ExitCode;

/// Print the JSON Schema of tollgate.yaml
#[derive(clap::Args)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(&self) -> ExitCode {
        let result = serde_json::to_string_pretty(&tollgate_policy::schema())
            .map_err(io::Error::from)
            .and_then(|schema| writeln!(io::stdout(), "{schema}"));
        written(result, ExitCode::SUCCESS)
    }
}
