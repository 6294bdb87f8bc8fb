//! `tollgate completions`.

use super::exit_code_of;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{self, Write};
use std::process::ExitCode;

/// Print a script that completes `tollgate` in a shell
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(tollgate completions bash)
  tollgate completions zsh > \"${fpath[1]}/_tollgate\"
  tollgate completions fish > ~/.config/fish/completions/tollgate.fish";

impl Completions {
    pub(crate) fn run<C: CommandFactory>(&self) -> ExitCode {
        // It is made in memory, since the maker panics where it cannot write.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut C::command(), "tollgate", &mut script);
        exit_code_of(io::stdout().lock().write_all(&script), ExitCode::SUCCESS)
    }
}
