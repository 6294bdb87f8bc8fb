//! `tollgate schema`.

use super::exit_code_of;
use std::io::{self, Write};
use std::process::ExitCode;
use tollgate_server::front::http::openapi::openapi;

/// Print the JSON Schema of tollgate.yaml
#[derive(clap::Args)]
pub(crate) struct Schema {
    /// Print the OpenAPI description of the check API instead
    #[arg(long)]
    openapi: bool,
}

impl Schema {
    pub(crate) fn run(&self) -> ExitCode {
        let result = match self.openapi {
            true => io::stdout().write_all(openapi()),
            false => serde_json::to_string_pretty(&tollgate_policy::schema())
                .map_err(io::Error::from)
                .and_then(|schema| writeln!(io::stdout(), "{schema}")),
        };
        exit_code_of(result, ExitCode::SUCCESS)
    }
}
