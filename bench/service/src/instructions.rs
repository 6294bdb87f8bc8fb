//! Instructions a request outside the kernel, counted by callgrind: the one figure that a busy machine does not move.
//!
//! Every server runs twice under valgrind, once with more requests than the other time; start and end cancel out.

use crate::CONNECTIONS;
use crate::contender::{Contender, FLOOR, FLOOR_FIELDS, OURS, OURS_3, Programs, THROTTLECRAB};
use crate::load::Load;
use crate::process::Server;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FEW: usize = 2_000;
const MANY: usize = 12_000;
const FUNCTIONS: usize = 25;

/// The table, and for ours and the floor the functions that cost most.
pub(crate) fn report(programs: &Programs) -> Result<(), Box<dyn Error>> {
    println!("\n### Instructions a request, outside the kernel\n");
    println!("| | instructions |\n|---|---|");
    let mut profiles = Vec::new();
    for name in [OURS, OURS_3, FLOOR, FLOOR_FIELDS, THROTTLECRAB] {
        let contender = match programs.contender(name) {
            Ok(contender) => contender,
            Err(error) => {
                eprintln!("{name} is left out: {error}");
                continue;
            }
        };
        let few = total(&run(&contender, FEW)?)?;
        let profile = run(&contender, MANY)?;
        println!("| {name} | {:.0} |", (total(&profile)? - few) / (MANY - FEW) as f64);
        profiles.push((name, profile));
    }
    for (name, profile) in profiles.iter().filter(|(name, _)| [OURS, FLOOR].contains(name)) {
        println!("\n{name}, by function:\n\n```text\n{}```", annotate(profile)?);
    }
    Ok(())
}

/// Runs a server under callgrind for `count` requests and answers where the counts are.
fn run(contender: &Contender, count: usize) -> Result<PathBuf, Box<dyn Error>> {
    let name = contender.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let file = std::env::temp_dir().join(format!("tollgate-service-{name}.out"));
    let mut program = contender.program.clone();
    let valgrind = ["--tool=callgrind".into(), format!("--callgrind-out-file={}", file.display())];
    program.arguments.splice(0..0, valgrind.into_iter().chain([program.path]));
    program.path = "valgrind".into();
    let server = Server::start(&program)?;
    let requests = contender.wants.requests();
    Load::open(server.address, &requests, CONNECTIONS)?.closed(count)?;
    server.end()?;
    Ok(file)
}

fn total(profile: &Path) -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string(profile)?;
    let totals = text.lines().find_map(|line| line.strip_prefix("totals:"));
    Ok(totals.ok_or("callgrind counted nothing")?.trim().parse()?)
}

/// The costliest functions, each with its own instructions a request.
fn annotate(profile: &Path) -> Result<String, Box<dyn Error>> {
    let output = Command::new("callgrind_annotate").arg("--auto=no").arg(profile).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut functions: Vec<(&str, f64)> = Vec::new();
    for line in text.lines().skip_while(|line| !line.contains("file:function")) {
        let Some((cost, function)) = read(line) else { continue };
        match functions.iter_mut().find(|(known, _)| *known == function) {
            Some((_, sum)) => *sum += cost,
            None => functions.push((function, cost)),
        }
    }
    functions.sort_by(|a, b| b.1.total_cmp(&a.1));
    let line = |(function, cost): &(&str, f64)| format!("{:8.1}  {function}\n", cost / MANY as f64);
    Ok(functions.iter().take(FUNCTIONS).map(line).collect())
}

/// `18,438,110 (10.90%)  src/shard.rs:store::decide [program]`: the cost and the function.
fn read(line: &str) -> Option<(f64, &str)> {
    let (cost, rest) = line.trim().split_once(' ')?;
    let cost = cost.replace(',', "").parse().ok()?;
    let (_, place) = rest.split_once(')')?;
    let (_, function) = place.trim().split_once(':')?;
    Some((cost, function.rsplit_once(" [").map_or(function, |(function, _)| function)))
}
