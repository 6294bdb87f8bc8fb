//! Turns: every contender runs all the time, and each round measures one after the other.

use crate::contender::{Contender, Programs};
use crate::process::Server;
use std::error::Error;

/// A contender and its running server.
pub(crate) struct Runner {
    pub(crate) contender: Contender,
    pub(crate) server: Server,
    pub(crate) requests: Vec<Vec<u8>>,
}

/// Starts the contenders that can be started, and names the others.
pub(crate) fn start(
    programs: &Programs,
    names: &[&'static str],
    change: impl Fn(Contender) -> Contender,
) -> Vec<Runner> {
    let runner = |name| -> Result<Runner, Box<dyn Error>> {
        let contender = change(programs.contender(name)?);
        let server = Server::start(&contender.program)?;
        let requests = contender.wants.requests();
        Ok(Runner { contender, server, requests })
    };
    let mut runners = Vec::new();
    for name in names {
        match runner(name) {
            Ok(runner) => runners.push(runner),
            Err(error) => eprintln!("{name} is left out: {error}"),
        }
    }
    runners
}

/// Runs `turn` for every runner in every round, and returns the figures by runner. Each round
/// starts with another runner, so that none always follows the same one.
pub(crate) fn interleave<T>(
    runners: &[Runner],
    rounds: usize,
    mut turn: impl FnMut(&Runner) -> Result<T, Box<dyn Error>>,
) -> Result<Vec<Vec<T>>, Box<dyn Error>> {
    let mut figures: Vec<Vec<T>> = runners.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..rounds {
        for place in 0..runners.len() {
            let n = (round + place) % runners.len();
            let name = runners[n].contender.name;
            figures[n].push(turn(&runners[n]).map_err(|error| format!("{name}: {error}"))?);
        }
    }
    Ok(figures)
}
