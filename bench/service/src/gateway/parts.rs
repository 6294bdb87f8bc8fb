//! Measures the cost of the limits part by part: Tollgate's gateway with more and more limits, in
//! turns, beside an older build if there is one.

use super::SHORTER;
use super::proxies::{self, LIMITS};
use crate::closed::{self, Turn};
use crate::contender::{Contender, Programs, Wants, serve};
use crate::process::{Program, Ready, Server};
use crate::table::{Rounds, median, quiet};
use crate::turns::{Runner, interleave};
use crate::{Effort, contender};
use std::error::Error;
use std::net::SocketAddr;

/// A configuration: its names for this build and the older one, its file, and its number of users.
struct Part {
    names: [&'static str; 2],
    file: fn() -> String,
    users: usize,
}

const MANY: usize = contender::USERS;

const PARTS: [Part; 6] = [
    Part { names: ["no limits", "before: no limits"], file: String::new, users: MANY },
    Part {
        names: ["one limit, no fields", "before: one limit, no fields"],
        file: one,
        users: MANY,
    },
    Part { names: ["one limit, fields", "before: one limit, fields"], file: one_said, users: MANY },
    Part {
        names: ["three limits, no fields", "before: three, no fields"],
        file: three,
        users: MANY,
    },
    Part { names: ["three limits, fields", "before: three, fields"], file: said, users: MANY },
    Part { names: ["the same, 20 users", "before: three, 20 users"], file: said, users: 20 },
];

fn said() -> String {
    LIMITS.to_owned()
}

fn three() -> String {
    format!("headers: none\n{LIMITS}")
}

/// The limits up to the first.
fn one_said() -> String {
    let lines: Vec<_> = LIMITS.lines().take(3).collect();
    lines.join("\n") + "\n"
}

fn one() -> String {
    format!("headers: none\n{}", one_said())
}

pub(super) fn report(
    programs: &Programs,
    upstream: SocketAddr,
    effort: Effort,
) -> Result<(), Box<dyn Error>> {
    let builds = [Some(&programs.ours), programs.before.as_ref()];
    let mut runners = Vec::new();
    for (n, build) in builds.into_iter().enumerate() {
        let Some(build) = build else { continue };
        for (place, part) in PARTS.iter().enumerate() {
            let file = proxies::file("'127.0.0.1:0'", upstream, &(part.file)());
            let arguments = serve(&format!("part-{n}-{place}.yaml"), &file)?;
            let path = build.to_string_lossy().into_owned();
            let program = Program { path, arguments, ready: Ready::Line };
            let server = Server::start(&program)?;
            let contender = Contender { name: part.names[n], program, wants: Wants::Page };
            let requests = (0..part.users).map(|user| Wants::Page.request(user)).collect();
            runners.push(Runner { contender, server, requests });
        }
    }
    let effort = effort.in_turns(SHORTER);
    let turn = |runner: &Runner| closed::turn(runner, effort.requests);
    interleave(&runners, 1, turn)?;
    print(&runners, &interleave(&runners, effort.rounds, turn)?);
    Ok(())
}

fn print(runners: &[Runner], figures: &[Vec<Turn>]) {
    println!("\n### What the limits cost, part by part\n");
    println!("| | s/M | cheapest tenth | more than no limits | between the cheapest tenths |");
    println!("|---|---|---|---|---|");
    let costs = closed::costs(figures);
    for (n, (runner, cost)) in runners.iter().zip(&costs).enumerate() {
        let bare = &costs[n - n % PARTS.len()];
        let more: Rounds = cost.iter().zip(bare).map(|(cost, bare)| cost - bare).collect();
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} |",
            runner.contender.name,
            median(cost),
            quiet(cost),
            median(&more),
            quiet(cost) - quiet(bare),
        );
    }
}
