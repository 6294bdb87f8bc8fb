//! Libraries in other languages, each called by a small script in `peers/` on a virtual clock.

use super::{NotApplicable, Peer, all_at_once, played};
use crate::process::{Folder, feed, output};
use crate::promise::{Answer, Played, Promise};
use crate::trace::{THREADS, Trace, TraceKind};
use std::process::Command;

enum Script {
    /// A strategy of Python's `limits`.
    Limits(&'static str, Promise),
    Flexible,
    Express,
}

const LIMITS: &str = include_str!("../../peers/python_limits.py");
const CLOCK: &str = include_str!("../../peers/clock.js");
const FLEXIBLE: &str = include_str!("../../peers/flexible.js");
const EXPRESS: &str = include_str!("../../peers/express.js");

pub(super) fn peers() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(Script::Limits("fixed", Promise::FromFirst)),
        Box::new(Script::Limits("moving", Promise::Log)),
        Box::new(Script::Limits("counter", Promise::RoundedCounter)),
        Box::new(Script::Flexible),
        Box::new(Script::Express),
    ]
}

impl Script {
    /// The program, its script and the limit as arguments.
    fn command(&self, folder: &Folder, trace: &Trace) -> Command {
        let numbers =
            [trace.limit.count, trace.limit.window_us / 1_000_000].map(|one| one.to_string());
        let mut command;
        match self {
            Self::Limits(strategy, _) => {
                command = Command::new("python3");
                command.arg(folder.write("python_limits.py", LIMITS)).arg(strategy);
            }
            Self::Flexible | Self::Express => {
                folder.write("clock.js", CLOCK);
                let text = if matches!(self, Self::Flexible) { FLEXIBLE } else { EXPRESS };
                command = node();
                command.arg(folder.write("peer.js", text));
            }
        }
        command.args(numbers);
        command
    }
}

/// Node.js, with npm's global packages unless the caller names others.
fn node() -> Command {
    let mut command = Command::new("node");
    if std::env::var_os("NODE_PATH").is_none()
        && let Ok(root) = output(Command::new("npm").args(["root", "--global"]))
    {
        command.env("NODE_PATH", root.lines().next().unwrap_or_default().trim());
    }
    command
}

fn node_version(package: &str) -> Result<String, String> {
    let code = format!(
        "const f = require.resolve('{package}'); const at = f.lastIndexOf('{package}'); \
         console.log(JSON.parse(require('fs').readFileSync(f.slice(0, at) + '{package}/package.json')).version)"
    );
    let version = output(node().args(["-e", &code])).map(|text| text.trim().to_owned());
    version.map_err(|_| format!("`npm install --global {package}`"))
}

impl Peer for Script {
    fn name(&self) -> String {
        match self {
            Self::Limits("fixed", _) => "Python `limits`, `FixedWindowRateLimiter`".into(),
            Self::Limits("moving", _) => "Python `limits`, `MovingWindowRateLimiter`".into(),
            Self::Limits(..) => "Python `limits`, `SlidingWindowCounterRateLimiter`".into(),
            Self::Flexible => "Node `rate-limiter-flexible`".into(),
            Self::Express => "Node `express-rate-limit`".into(),
        }
    }

    fn version(&self) -> Result<String, String> {
        match self {
            Self::Limits(..) => {
                let mut python = Command::new("python3");
                let text = output(python.args(["-c", "import limits; print(limits.__version__)"]));
                text.map(|text| text.trim().to_owned()).map_err(|_| "`pip install limits`".into())
            }
            Self::Flexible => node_version("rate-limiter-flexible"),
            Self::Express => node_version("express-rate-limit"),
        }
    }

    fn promise(&self) -> Promise {
        match self {
            Self::Limits(_, promise) => *promise,
            Self::Flexible | Self::Express => Promise::FromFirst,
        }
    }

    fn documented(&self) -> &'static str {
        match self {
            Self::Limits("fixed", _) => "resets at an interval after the first hit",
            Self::Limits("moving", _) => "each hit is logged; at most N in the last window",
            Self::Limits(..) => {
                "approximates the moving window: `floor` of the weighted count; `reset_time` of `get_window_stats` is taken as the wait"
            }
            Self::Flexible => "`points` in `duration` seconds, from the first action on",
            Self::Express => "`limit` requests of a client in `windowMs`",
        }
    }

    fn repeat(&self) -> String {
        match self {
            Self::Limits(strategy, _) => {
                format!("`pip install limits`; `python3 bench/exactness/peers/python_limits.py {strategy} 10 1`")
            }
            Self::Flexible => {
                "`npm install --global rate-limiter-flexible`; `node bench/exactness/peers/flexible.js 10 1`".into()
            }
            Self::Express => {
                "`npm install --global express-rate-limit`; `node bench/exactness/peers/express.js 10 1`".into()
            }
        }
    }

    /// Milliseconds, or whole seconds in a header.
    fn retry_unit_us(&self) -> u64 {
        match self {
            Self::Limits(..) => 2,
            Self::Flexible => 1_000,
            Self::Express => 1_000_000,
        }
    }

    fn play(&self, trace: &Trace) -> Result<Vec<Played>, NotApplicable> {
        let folder = Folder::new();
        let mut command = self.command(&folder, trace);
        match (self, trace.kind) {
            (Self::Express, TraceKind::Costs) => return Err("a request costs one".into()),
            (Self::Flexible | Self::Express, TraceKind::Threads) => {
                return Err("one thread decides".into());
            }
            (Self::Limits(..), TraceKind::Threads) => {
                let each = trace.steps.len() / THREADS;
                command.args([THREADS.to_string(), each.to_string()]);
                let admitted = output(&mut command)?;
                let admitted =
                    admitted.trim().parse().map_err(|_| format!("printed {admitted}"))?;
                return Ok(all_at_once(trace, admitted));
            }
            _ => {}
        }
        let is_node = !matches!(self, Self::Limits(..));
        let line = |at_us: u64, wall_us: u64, cost: u64| match is_node {
            true => format!("{at_us} {wall_us} {cost}\n"),
            false => format!("{wall_us} {cost}\n"),
        };
        let input: String =
            trace.steps.iter().map(|step| line(step.at_us, step.wall_us, step.cost)).collect();
        let text = feed(&mut command, &input)?;
        let answers: Vec<Answer> = text.lines().filter_map(parse).collect();
        if answers.len() != trace.steps.len() {
            return Err(format!("{} answers to {} requests", answers.len(), trace.steps.len()));
        }
        Ok(trace.steps.iter().zip(answers).map(|(step, answer)| played(step, answer)).collect())
    }
}

/// Parses `1 - 9`: admitted, no wait, nine left.
fn parse(line: &str) -> Option<Answer> {
    let mut words = line.split(' ');
    let admitted = words.next()? == "1";
    let retry_us = words.next()?.parse().ok();
    Some(Answer { admitted, retry_us, remaining: words.next()?.parse().ok() })
}
