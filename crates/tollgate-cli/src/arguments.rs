//! The command line: its arguments and its commands.

use crate::command::{self, FAILED, UNUSABLE, end_printed, exit_code};
use clap::{Parser, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;

/// A rate limiter: gateway, service and Redis-protocol server.
///
/// Without a command: `tollgate serve`.
#[derive(Parser)]
#[command(
    name = "tollgate",
    version,
    long_version = VERSION,
    disable_help_subcommand = true,
    after_help = EXAMPLES
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

/// The text that `--version` prints after the name; `-V` prints the first word.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("TOLLGATE_COMMIT_SHORT"),
    "\nfeatures: gateway http grpc resp admin redis tls http2 otlp"
);

const EXAMPLES: &str = "\
Examples:
  tollgate                                     serve ./tollgate.yaml, or a built-in policy
  tollgate choose > tollgate.yaml              which algorithm? six questions, then a policy
  tollgate check                               find mistakes before they take effect
  tollgate simulate --config tollgate.yaml --requests requests.jsonl
                                               try a policy on recorded traffic
  tollgate replay /var/log/nginx/access.log    what would the limits have done to yesterday's traffic?
  tollgate compare new.yaml access.log         which requests would a new policy decide differently?
  tollgate explain --user 42 --path /api/x     would this request pass? and why?
  tollgate suggest access.log > tollgate.yaml  limits that fit the traffic, with reasons
  tollgate import limitador limits.yaml        convert the limits of another rate limiter
  tollgate hash < key.txt                      hash an API key for a tier map
  tollgate admin status                        manage a running tollgate
  tollgate top                                 watch limits, rates and top keys
  tollgate tail --refused                      watch decisions as they happen
  tollgate usage report usage*.jsonl --by user
                                               add up who used how much
  tollgate schema                              print the JSON Schema, for your editor

Exit status: 0 success, 1 the file or the input has errors, policies differ, or
a request would be refused, 2 any other failure.";

#[derive(Subcommand)]
enum Command {
    Serve(command::serve::Serve),
    Admin(command::admin::Admin),
    Check(command::check::Check),
    Choose(command::choose::Choose),
    Compare(command::compare::Compare),
    Explain(Box<command::explain::Explain>),
    Hash(command::hash::Hash),
    Import(command::import::Import),
    Replay(command::replay::Replay),
    Schema(command::generate::Schema),
    Simulate(command::simulate::Simulate),
    Suggest(command::suggest::Suggest),
    Tail(command::tail::Tail),
    Top(command::top::Top),
    Usage(command::usage::Usage),
    Completions(command::generate::Completions),
    Man(command::generate::Man),
}

/// Runs the program with the arguments of its process.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => run(arguments),
        // clap prints help and the version, and explains a wrong argument.
        Err(shown) => {
            let status = u8::try_from(shown.exit_code()).unwrap_or(UNUSABLE);
            let printed = shown.print().and_then(|()| io::stdout().flush());
            exit_code(end_printed(printed, status), UNUSABLE)
        }
    }
}

fn run(arguments: Arguments) -> ExitCode {
    let done = match arguments.command {
        None => return run(Arguments::parse_from(["tollgate", "serve"])),
        Some(Command::Serve(serve)) => serve.run(),
        Some(Command::Admin(admin)) => admin.run(),
        Some(Command::Check(check)) => check.run(),
        Some(Command::Choose(choose)) => choose.run(),
        Some(Command::Compare(compare)) => compare.run(),
        Some(Command::Explain(explain)) => explain.run(),
        Some(Command::Hash(hash)) => hash.run(),
        Some(Command::Import(import)) => import.run(),
        Some(Command::Replay(replay)) => replay.run(),
        Some(Command::Schema(schema)) => schema.run(),
        Some(Command::Simulate(simulate)) => return exit_code(simulate.run(), FAILED),
        Some(Command::Suggest(suggest)) => suggest.run(),
        Some(Command::Tail(tail)) => tail.run(),
        Some(Command::Top(top)) => top.run(),
        Some(Command::Usage(usage)) => usage.run(),
        Some(Command::Completions(completions)) => completions.run::<Arguments>(),
        Some(Command::Man(man)) => man.run::<Arguments>(),
    };
    exit_code(done, UNUSABLE)
}
