//! The `tollgate` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate_cli::main()
}
