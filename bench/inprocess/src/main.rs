//! Measures decisions in one process: `cargo run --release -p inprocess -- [ROW ...] [--only NAME] [--rounds N] [--millis N]`.
//!
//! Prints rows as Markdown, ready for `docs/benchmarks.md`. Without a row's name, all rows are
//! measured. The row `bytes` restarts this program for every contender. `--only` is for profilers:
//! one contender and no ratios.

mod bytes;
mod measure;
mod report;
mod rows;

use measure::Effort;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, name, keys] = &arguments[..]
        && command == "fill"
    {
        return bytes::fill(name, keys);
    }
    let Some(Options { names, only, effort }) = read(&arguments) else {
        let options = "[--only NAME] [--rounds N] [--millis N]";
        eprintln!("usage: inprocess [ROW ...] {options}; rows: {}", rows::NAMES);
        return ExitCode::from(2);
    };
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    for row in rows::ALL.into_iter().filter(|row| wanted(row.name)) {
        let mut contenders = (row.contenders)();
        contenders.retain(|contender| only.as_ref().is_none_or(|name| contender.name() == name));
        let keys = row.traffic.keys();
        contenders.iter().for_each(|contender| measure::fill(&**contender, &keys));
        drop(keys);
        let arrivals = row.traffic.draw();
        for &threads in row.threads {
            let rounds = measure::interleave(&contenders, &arrivals, threads, effort);
            report::print(&row, threads, &contenders, &rounds);
        }
    }
    if wanted("bytes") {
        return bytes::report();
    }
    ExitCode::SUCCESS
}

#[derive(Default)]
struct Options {
    names: Vec<String>,
    only: Option<String>,
    effort: Effort,
}

fn read(arguments: &[String]) -> Option<Options> {
    let mut options = Options::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => options.only = Some(arguments.next()?.clone()),
            "--rounds" => options.effort.rounds = arguments.next()?.parse().ok()?,
            "--millis" => options.effort.millis = arguments.next()?.parse().ok()?,
            name if rows::NAMES.split(' ').any(|known| known == name) => {
                options.names.push(name.into());
            }
            _ => return None,
        }
    }
    Some(options)
}
