//! Measures decisions in one process: `cargo run --release -p inprocess -- [ROW ...] [--rounds N] [--millis N]`.
//!
//! Rows are printed as Markdown, ready for `docs/benchmarks.md`. Without a row's name all are measured; the row `bytes`
//! starts this program once more for every contender.

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
    let Some((names, effort)) = read(&arguments) else {
        eprintln!("usage: inprocess [ROW ...] [--rounds N] [--millis N]; rows: {}", rows::NAMES);
        return ExitCode::from(2);
    };
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    for row in rows::ALL.into_iter().filter(|row| wanted(row.name)) {
        let contenders = (row.contenders)();
        let keys = row.traffic.keys();
        contenders.iter().for_each(|contender| measure::fill(&**contender, &keys));
        drop(keys);
        let arrivals = row.traffic.draw();
        for threads in [1, 2] {
            let rounds = measure::interleave(&contenders, &arrivals, threads, effort);
            report::print(&row, threads, &contenders, &rounds);
        }
    }
    if wanted("bytes") {
        return bytes::report();
    }
    ExitCode::SUCCESS
}

fn read(arguments: &[String]) -> Option<(Vec<String>, Effort)> {
    let (mut names, mut effort) = (Vec::new(), Effort::default());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => effort.rounds = arguments.next()?.parse().ok()?,
            "--millis" => effort.millis = arguments.next()?.parse().ok()?,
            name if rows::NAMES.split(' ').any(|known| known == name) => names.push(name.into()),
            _ => return None,
        }
    }
    Some((names, effort))
}
