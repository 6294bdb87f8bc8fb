//! The check API over HTTP/2, with h2load: ten connections with ten streams each, all for one user.

use crate::Effort;
use crate::closed::{Turn, print};
use crate::contender::{Contender, FLOOR, FLOOR_FIELDS, OURS, OURS_3, Programs};
use crate::turns::{Runner, interleave, start};
use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};

/// Prints the table of HTTP/2.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    if !is_there("http2") {
        return Ok(());
    }
    let runners = start(programs, &[OURS, OURS_3, FLOOR, FLOOR_FIELDS], Contender::http2);
    let turn = |runner: &Runner| turn(runner, effort.requests);
    interleave(&runners, 1, turn)?;
    let figures = interleave(&runners, effort.rounds, turn)?;
    print("HTTP/2, 10 connections with 10 streams each", &runners, &figures, None);
    Ok(())
}

/// Whether h2load is installed; otherwise prints which row is skipped.
pub(crate) fn is_there(row: &str) -> bool {
    let found = Command::new("h2load").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("{row} is left out: there is no h2load (Debian: nghttp2-client)");
    }
    found
}

fn turn(runner: &Runner, requests: usize) -> Result<Turn, Box<dyn Error>> {
    let body = runner.contender.wants.body(0);
    h2load(runner, requests, body.as_bytes(), &["content-type: application/json"])
}

/// Measures one turn, with the same body every time.
pub(crate) fn h2load(
    runner: &Runner,
    requests: usize,
    body: &[u8],
    fields: &[&str],
) -> Result<Turn, Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("tollgate-bench-body-{}", std::process::id()));
    fs::write(&file, body)?;
    let path = runner.contender.wants.path();
    let before = runner.server.cpu_seconds();
    let output = Command::new("h2load")
        .args(["-n", &requests.to_string(), "-c", "10", "-m", "10"])
        .args(fields.iter().map(|field| format!("--header={field}")))
        .arg(format!("--data={}", file.display()))
        .arg(format!("http://{}{path}", runner.server.address))
        .output()?;
    let cpu = runner.server.cpu_seconds() - before;
    fs::remove_file(&file)?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains(&format!("status codes: {requests} 2xx")) {
        return Err(format!("h2load did not get {requests} times 200:\n{text}").into());
    }
    let rate = text
        .lines()
        .find_map(|line| line.strip_prefix("finished in ")?.split(", ").nth(1)?.split(' ').next())
        .and_then(|rate| rate.parse::<f64>().ok())
        .ok_or("h2load said no rate")?;
    Ok(Turn::new(cpu, requests as f64 / rate, requests))
}
