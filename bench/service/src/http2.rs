//! The same over HTTP/2, with h2load: ten connections with ten streams each, all about one user.

use crate::Effort;
use crate::closed::{Turn, print};
use crate::contender::{Contender, FLOOR, FLOOR_FIELDS, OURS, OURS_3, Programs};
use crate::turns::{Runner, interleave, start};
use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};

/// The table of HTTP/2.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    if Command::new("h2load").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("http2 is left out: there is no h2load (Debian: nghttp2-client)");
        return Ok(());
    }
    let runners = start(programs, &[OURS, OURS_3, FLOOR, FLOOR_FIELDS], Contender::http2);
    let turn = |runner: &Runner| turn(runner, effort.requests);
    interleave(&runners, 1, turn)?;
    let figures = interleave(&runners, effort.rounds, turn)?;
    print("HTTP/2, 10 connections with 10 streams each", &runners, &figures, None);
    Ok(())
}

fn turn(runner: &Runner, requests: usize) -> Result<Turn, Box<dyn Error>> {
    let wants = runner.contender.wants;
    let file = std::env::temp_dir().join(format!("tollgate-bench-body-{}", std::process::id()));
    fs::write(&file, wants.body(0))?;
    let before = runner.server.cpu_seconds();
    let output = Command::new("h2load")
        .args(["-n", &requests.to_string(), "-c", "10", "-m", "10"])
        .arg("--header=content-type: application/json")
        .arg(format!("--data={}", file.display()))
        .arg(format!("http://{}{}", runner.server.address, wants.path()))
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
