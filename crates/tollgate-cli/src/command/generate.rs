//! Files made from the program: `tollgate schema`, `man` and `completions`.

use super::{UNUSABLE, exit_code_of};
use clap::CommandFactory;
use clap_complete::Shell;
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
        if self.openapi {
            return exit_code_of(io::stdout().write_all(openapi()), ExitCode::SUCCESS);
        }
        let schema = serde_json::to_string_pretty(&tollgate_policy::schema());
        let written = schema.map_err(io::Error::from);
        let written = written.and_then(|schema| writeln!(io::stdout(), "{schema}"));
        exit_code_of(written, ExitCode::SUCCESS)
    }
}

/// Print a manual page
#[derive(clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct Man {
    /// The command that the page is about; `tollgate` itself without one
    command: Vec<String>,
}

const MAN_EXAMPLES: &str = "\
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
        let written = rendered.and_then(|()| io::stdout().lock().write_all(&page));
        exit_code_of(written, ExitCode::SUCCESS)
    }
}

/// Print a script that completes `tollgate` in a shell
#[derive(clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(tollgate completions bash)
  tollgate completions zsh > \"${fpath[1]}/_tollgate\"
  tollgate completions fish > ~/.config/fish/completions/tollgate.fish";

impl Completions {
    pub(crate) fn run<C: CommandFactory>(&self) -> ExitCode {
        // Written to memory first, since clap_complete panics if it cannot write.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut C::command(), "tollgate", &mut script);
        exit_code_of(io::stdout().lock().write_all(&script), ExitCode::SUCCESS)
    }
}
