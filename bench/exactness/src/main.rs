//! `exactness`: runs a table of traces through Tollgate and its peers. Each is judged by its own
//! promise.
//!
//! `cargo xtask exactness` runs it and writes `docs/exactness.md`.

mod page;
mod peer;
mod process;
mod promise;
#[cfg(test)]
mod tests;
mod trace;

use page::Row;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// `--only NAME`: peers whose name contains this. `--page FILE`: the page to write.
fn run(arguments: Vec<String>) -> Result<(), String> {
    let (mut only, mut file) = (String::new(), None);
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--only" => only = value.to_lowercase(),
            [name, value] if name == "--page" => file = Some(value.clone()),
            other => return Err(format!("unexpected argument `{}`", other.join(" "))),
        }
    }
    let traces = trace::traces();
    let mut rows = Vec::new();
    for peer in peer::peers() {
        let name = peer.name();
        if !name.to_lowercase().contains(&only) {
            continue;
        }
        let version = peer.version();
        eprintln!("{name}: {}", version.as_ref().unwrap_or_else(|why| why));
        let cells = match &version {
            Ok(_) => traces.iter().map(|trace| peer.counts(trace)).collect(),
            Err(_) => Vec::new(),
        };
        rows.push(Row { peer, version, cells });
    }
    println!("{}", page::table(&traces, &rows));
    if let Some(file) = file {
        let text = page::page(&traces, &rows);
        std::fs::write(&file, text).map_err(|why| format!("cannot write {file}: {why}"))?;
    }
    Ok(())
}
