//! The `tollgate` command. One file per command under `command/`.

mod command;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Rate limits, decided wherever traffic passes.
#[derive(Parser)]
#[command(name = "tollgate", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Check(command::check::Check),
    Schema(command::schema::Schema),
    Simulate(command::simulate::Simulate),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Some(Command::Check(check)) => check.run(),
        Some(Command::Schema(schema)) => schema.run(),
        Some(Command::Simulate(simulate)) => simulate.run(),
        None => {
            eprint!("{}", command::TRY);
            ExitCode::from(command::UNUSABLE)
        }
    }
}
