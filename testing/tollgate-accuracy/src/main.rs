//! `accuracy`: runs every algorithm beside an exact log. `cargo xtask accuracy` runs it.

mod arguments;
mod contestant;
mod exact_log;
mod page;
mod picture;
mod progress;
mod tally;
#[cfg(test)]
mod tests;
mod traffic;

use arguments::{Arguments, Input};
use contestant::{Contestant, Limit};
use progress::Progress;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tally::{Race, Tally};
use tollgate_logs::{Field, Logs, ReadOptions, find_format};
use traffic::Traffic;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let Arguments { limit, input, page } = Arguments::parse(arguments)?;
    let contestants = Contestant::all(limit);
    match input {
        Input::Generated(traffic) => {
            let tallies = generated(&traffic, &contestants);
            println!("{}", page::table(&contestants, &tallies, limit));
            if let Some(page) = page {
                write(&page, &page::page(&traffic, &contestants, &tallies))?;
                let picture = page.with_file_name("pictures").join("accuracy.svg");
                write(&picture, &picture::draw(&contestants, &tallies, limit))?;
            }
        }
        Input::Logs { files, format } => {
            let tallies = logs(&files, format.as_deref(), &contestants, limit)?;
            println!("{}", page::table(&contestants, &tallies, limit));
        }
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|why| format!("cannot write {}: {why}", file.display()))
}

/// Runs the sources one after the other, each to its last request, since sources are independent.
fn generated(traffic: &Traffic, contestants: &[Contestant]) -> Vec<Tally> {
    let mut progress = Progress::new(traffic.sources);
    let mut totals = vec![Tally::default(); contestants.len()];
    for source in 0..traffic.sources {
        let mut race = Race::new(contestants, traffic.limit);
        traffic.times(source).for_each(|time_us| race.step(time_us));
        race.add_to(&mut totals);
        progress.show(source + 1, totals.first().map_or(0, |tally| tally.requests));
    }
    totals
}

/// Runs the requests of logs, by address.
fn logs(
    files: &[PathBuf],
    format: Option<&str>,
    contestants: &[Contestant],
    limit: Limit,
) -> Result<Vec<Tally>, String> {
    let format = match format {
        None => None,
        Some(name) => Some(find_format(name).ok_or(format!("there is no format `{name}`"))?),
    };
    let options = ReadOptions::new(Vec::new(), Vec::new());
    let opened = Logs::open(files, format, options, &[Field::Ip]);
    let mut logs = opened.map_err(|why| why.to_string())?;
    let mut races: FxHashMap<String, Race<'_>> = FxHashMap::default();
    let mut progress = Progress::new(0);
    let mut requests = 0;
    while let Some(record) = logs.next_record().map_err(|why| why.to_string())? {
        let (ip, time_us) = (record.value(Field::Ip), record.time_us());
        match races.get_mut(ip) {
            Some(race) => race.step(time_us),
            None => {
                races.entry(ip.to_owned()).or_insert(Race::new(contestants, limit)).step(time_us)
            }
        }
        requests += 1;
        progress.show(races.len() as u64, requests);
    }
    let mut totals = vec![Tally::default(); contestants.len()];
    races.into_values().for_each(|race| race.add_to(&mut totals));
    Ok(totals)
}
