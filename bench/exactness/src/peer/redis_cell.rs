//! redis-cell in a redis-server: `CL.THROTTLE` in real time.

use super::server::{RealClock, play_real};
use super::{NotApplicable, Peer};
use crate::process::{Folder, Running, free_port, output};
use crate::promise::{Answer, Played, Promise};
use crate::trace::{Trace, TraceKind};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

/// The variable with the path of the module, which is built from the crate `redis-cell`.
const MODULE: &str = "REDIS_CELL";

pub(super) struct RedisCell;

fn module() -> Result<String, String> {
    std::env::var(MODULE).map_err(|_| format!("`{MODULE}` names no module"))
}

impl Peer for RedisCell {
    fn name(&self) -> String {
        "redis-cell".into()
    }

    fn version(&self) -> Result<String, String> {
        let server = output(Command::new("redis-server").arg("--version"))?;
        let server = server.split("v=").nth(1).and_then(|rest| rest.split(' ').next());
        module().map(|_| format!("0.2.2 in Redis {}", server.unwrap_or("of some version")))
    }

    fn promise(&self) -> Promise {
        Promise::Bucket
    }

    fn documented(&self) -> &'static str {
        "`CL.THROTTLE <key> <max_burst> <count per period> <period>`: GCRA; the limit is `max_burst` + 1. 0.2.2 is the last version on crates.io; the project has released later ones"
    }

    fn repeat(&self) -> String {
        "`cargo new cell --lib; cd cell; cargo add redis-cell@0.2.2; cargo vendor; cargo build --release --manifest-path vendor/redis-cell/Cargo.toml`; `redis-server --loadmodule vendor/redis-cell/target/release/libredis_cell.so`; \
         `CL.THROTTLE key 9 10 1 COST`. Here: `REDIS_CELL=that file`".into()
    }

    fn retry_unit_us(&self) -> u64 {
        1_000_000
    }

    fn play(&self, trace: &Trace) -> Result<Vec<Played>, NotApplicable> {
        match trace.kind {
            TraceKind::ClockStep => return Err("needs the system's clock to be set".into()),
            TraceKind::Long => {
                return Err(
                    "needs 20 min of real time: redis-server does not start with libfaketime"
                        .into(),
                );
            }
            _ => {}
        }
        let (folder, port, module) = (Folder::new(), free_port(), module()?);
        let words =
            ["redis-server", "--save", "", "--dir", &folder.path(), "--port", &port.to_string()];
        let words = words.into_iter().chain(["--bind", "127.0.0.1", "--loadmodule", &module]);
        let server = Running::start(words.map(str::to_owned), 1)?;
        server.until_open(port)?;
        let (count, seconds) = (trace.limit.count, trace.limit.window_us / 1_000_000);
        let first = TcpStream::connect(("127.0.0.1", port)).map_err(|why| why.to_string())?;
        if ask(&mut BufReader::new(first), "CL.THROTTLE another 1 1 1 1").len() != 5 {
            return Err("its redis-server ends at the first `CL.THROTTLE`".into());
        }
        Ok(play_real(trace, RealClock::start(1), |_| {
            let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
            stream.set_nodelay(true).ok();
            let mut stream = BufReader::new(stream);
            move |cost| {
                let command = format!("CL.THROTTLE key {} {count} {seconds} {cost}", count - 1);
                let numbers = ask(&mut stream, &command);
                let [limited, _, remaining, retry_s, _] = numbers[..] else {
                    panic!("an answer of five numbers: {numbers:?}")
                };
                let retry_us = u64::try_from(retry_s).ok().map(|retry_s| retry_s * 1_000_000);
                let retry_us = retry_us.filter(|_| limited == 1 && cost <= count);
                Answer {
                    admitted: limited == 0,
                    retry_us,
                    remaining: u64::try_from(remaining).ok(),
                }
            }
        }))
    }
}

/// The numbers of a reply; empty if the server is gone.
fn ask(stream: &mut BufReader<TcpStream>, command: &str) -> Vec<i64> {
    let sent = stream.get_mut().write_all(format!("{command}\r\n").as_bytes());
    let mut line = |prefix: char| {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        line.trim().strip_prefix(prefix).and_then(|number| number.parse().ok())
    };
    let count = sent.ok().and_then(|()| line('*')).unwrap_or(0);
    (0..count).map_while(|_| line(':')).collect()
}
