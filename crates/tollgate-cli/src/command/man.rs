//! `tollgate man`.

use super::{UNUSABLE, exit_code_of};
use clap::CommandFactory;
use std::io::{self, Write};
use std::process::ExitCode;

/// Print a manual page
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The command that the page is about; `tollgate` itself without one
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  tollgate man | man -l -
  tollgate man serve > /usr/local/share/man/man1/tollgate-serve.1";

impl Man {
    pub(crate) fn run<C: CommandFactory>(&self) -> ExitCode {
        let mut command = C::command();
        command.build();
        for word in &self.command {
            let Some(found) = command.find_subcommand(word) else {
                eprintln!("tollgate: there is no command `{}`", self.command.join(" "));
                return ExitCode::from(UNUSABLE);
            };
            command = found.clone();
        }
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(command).render(&mut page);
        exit_code_of(
            rendered.and_then(|()| io::stdout().lock().write_all(&page)),
            ExitCode::SUCCESS,
        )
    }
}
