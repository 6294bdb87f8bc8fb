//! Load by h2load, which supports TLS and HTTP/2. All requests are for one user.

use crate::CONNECTIONS;
use crate::closed::Turn;
use crate::turns::Runner;
use std::error::Error;
use std::process::{Command, Stdio};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

pub(super) fn is_there() -> bool {
    Command::new("h2load").arg("--version").stdout(Stdio::null()).status().is_ok()
}

pub(super) fn turn(
    runner: &Runner,
    version: Version,
    tls: bool,
    requests: usize,
) -> Result<Turn, Box<dyn Error>> {
    let mut command = Command::new("h2load");
    match version {
        Version::One => command.args(["--h1", "-c", &CONNECTIONS.to_string()]),
        Version::Two => command.args(["-c", "10", "-m", "10"]),
    };
    command.args(["-n", &requests.to_string(), "--header=x-user-id: user-000000"]);
    let scheme = if tls { "https" } else { "http" };
    command.arg(format!("{scheme}://{}/", runner.server.address));
    let before = runner.server.cpu_seconds();
    let output = command.output()?;
    let cpu = runner.server.cpu_seconds() - before;
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
