//! Counts instructions per request in user mode with callgrind: the one figure that a busy machine
//! does not change.
//!
//! Every server runs twice under valgrind, with different numbers of requests; start and end cancel
//! out. A hundred users take turns, so that all of them are known when counting begins. With 10,000
//! users, four of five requests are the first of their user, and create the state of every limit.

use crate::CONNECTIONS;
use crate::contender::{
    FLOOR, FLOOR_FIELDS, OURS, OURS_3, OURS_RESP, Programs, THROTTLECRAB, USERS,
};
use crate::gateway::{self, counted};
use crate::load::Load;
use crate::process::{Program, Server};
use crate::resp;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of users; all are known after a few requests each.
const KNOWN_USERS: usize = 100;
const FEW: usize = 2_000;
const MANY: usize = 12_000;
const FUNCTIONS: usize = 25;

/// The check API with 10,000 users.
const NEW_USERS: [(&str, &str); 2] =
    [(OURS, "ours, new users"), (OURS_3, "ours, three limits, new users")];

/// Rows whose functions are printed.
const EXPLAINED: [&str; 3] = [OURS, OURS_3, FLOOR];

/// A server, its requests, and its protocol.
struct Subject {
    name: &'static str,
    program: Program,
    requests: Vec<Vec<u8>>,
    is_resp: bool,
}

/// Prints the tables, and for some rows the costliest functions.
pub(crate) fn report(programs: &Programs) -> Result<(), Box<dyn Error>> {
    let mut subjects = Vec::new();
    let known = [OURS, OURS_3, FLOOR, FLOOR_FIELDS, THROTTLECRAB, OURS_RESP];
    let known = known.map(|name| (name, name, KNOWN_USERS));
    let new = NEW_USERS.map(|(contender, name)| (contender, name, USERS));
    for (contender, name, users) in known.into_iter().chain(new) {
        match programs.contender(contender) {
            Ok(contender) => subjects.push(Subject {
                name,
                requests: (0..users).map(|user| contender.wants.request(user)).collect(),
                program: contender.program,
                is_resp: name == OURS_RESP,
            }),
            Err(error) => eprintln!("{name} is left out: {error}"),
        }
    }
    let profiles = table("Instructions a request, outside the kernel", &subjects)?;
    for (name, profile) in profiles.iter().filter(|(name, _)| EXPLAINED.contains(name)) {
        println!("\n{name}, by function:\n\n```text\n{}```", annotate(profile)?);
    }
    let upstream = gateway::upstream()?;
    let mut subjects = Vec::new();
    for part in counted::parts(KNOWN_USERS) {
        let program = counted::program(&programs.ours, &part, upstream.address)?;
        subjects.push(Subject {
            name: part.name,
            program,
            requests: part.requests,
            is_resp: false,
        });
    }
    table("The same at the gateway", &subjects)?;
    Ok(())
}

/// Prints a row for each subject. Returns the profiles of the longer runs.
fn table(
    title: &str,
    subjects: &[Subject],
) -> Result<Vec<(&'static str, PathBuf)>, Box<dyn Error>> {
    println!("\n### {title}\n\n| | instructions |\n|---|---|");
    let mut profiles = Vec::new();
    for subject in subjects {
        let few = total(&run(subject, FEW)?)?;
        let profile = run(subject, MANY)?;
        println!("| {} | {:.0} |", subject.name, (total(&profile)? - few) / (MANY - FEW) as f64);
        profiles.push((subject.name, profile));
    }
    Ok(profiles)
}

/// Runs a server under callgrind for `count` requests. Returns the path of the profile.
fn run(subject: &Subject, count: usize) -> Result<PathBuf, Box<dyn Error>> {
    let name = subject.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let file = std::env::temp_dir().join(format!("tollgate-service-{name}.out"));
    let mut program = subject.program.clone();
    let valgrind = ["--tool=callgrind".into(), format!("--callgrind-out-file={}", file.display())];
    program.arguments.splice(0..0, valgrind.into_iter().chain([program.path]));
    program.path = "valgrind".into();
    let server = Server::start(&program)?;
    let address = server.address;
    match subject.is_resp {
        true => resp::Load::open(address, &subject.requests, CONNECTIONS, 1)?.run(count)?,
        false => Load::open(address, &subject.requests, CONNECTIONS)?.closed(count)?,
    };
    server.end()?;
    Ok(file)
}
fn total(profile: &Path) -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string(profile)?;
    let totals = text.lines().find_map(|line| line.strip_prefix("totals:"));
    Ok(totals.ok_or("callgrind counted nothing")?.trim().parse()?)
}

/// The costliest functions, each with its own instructions per request.
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

/// Parses `18,438,110 (10.90%)  src/shard.rs:store::decide [program]`: the cost and the function.
fn read(line: &str) -> Option<(f64, &str)> {
    let (cost, rest) = line.trim().split_once(' ')?;
    let cost = cost.replace(',', "").parse().ok()?;
    let (_, place) = rest.split_once(')')?;
    let (_, function) = place.trim().split_once(':')?;
    Some((cost, function.rsplit_once(" [").map_or(function, |(function, _)| function)))
}
