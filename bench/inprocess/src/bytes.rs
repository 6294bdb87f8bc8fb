//! Measures resident memory per key. Each contender runs in its own process, so that none inherits
//! freed pages.

use contenders::{
    Arrivals, Contender, Governor, Library, Limit, Limitador, Throttlecrab, default_quota, gcra,
    key,
};
use std::fs;
use std::process::{Command, ExitCode, Stdio};

const TARGET: f64 = 24.0;
/// Contenders and numbers of keys. limitador would need more than ten gigabytes for ten million.
const ROWS: [(&str, usize); 5] = [
    ("gcra", 10_000_000),
    ("default quota", 10_000_000),
    ("governor", 10_000_000),
    ("throttlecrab", 10_000_000),
    ("limitador", 1_000_000),
];

/// Starts a process for each contender and prints the table.
pub(crate) fn report() -> ExitCode {
    println!("\n### Resident bytes a key\n");
    println!("| | keys | bytes a key | target | |\n|---|---|---|---|---|");
    for (name, keys) in ROWS {
        let Some(bytes) = ask(name, keys) else {
            eprintln!("{name}: the process that was to be measured failed");
            return ExitCode::FAILURE;
        };
        let each = bytes / keys as f64;
        let (target, met) = match name {
            "gcra" | "default quota" if each <= TARGET => ("<= 24", "met"),
            "gcra" | "default quota" => ("<= 24", "missed"),
            _ => ("", ""),
        };
        println!("| {name} | {keys} | {each:.1} | {target} | {met} |");
    }
    ExitCode::SUCCESS
}

fn ask(name: &str, keys: usize) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    command.args(["fill", name, &keys.to_string()]).stderr(Stdio::inherit());
    String::from_utf8(command.output().ok()?.stdout).ok()?.trim().parse().ok()
}

/// Fills the contender `name` with `keys` keys, and prints the growth of this process in bytes. A
/// request is owed for an hour, so no state becomes idle and can be dropped before the end.
pub(crate) fn fill(name: &str, keys: &str) -> ExitCode {
    let Some((keys, contender)) = keys.parse().ok().and_then(|n| Some((n, contender(name, n)?)))
    else {
        eprintln!("usage: inprocess fill CONTENDER KEYS");
        return ExitCode::from(2);
    };
    let mut one = [String::with_capacity(32)];
    let before = resident_bytes();
    let mut admitted = 0;
    for n in 0..keys {
        one[0] = key(n);
        admitted += contender.run(Arrivals { keys: &one, from: 0, count: 1, shared: false });
    }
    let after = resident_bytes();
    if admitted != keys {
        eprintln!("{name}: {admitted} of {keys} admitted");
        return ExitCode::FAILURE;
    }
    println!("{}", after - before);
    ExitCode::SUCCESS
}

fn contender(name: &str, keys: usize) -> Option<Box<dyn Contender>> {
    Some(match name {
        "gcra" => Box::new(Library::large("gcra", gcra(Limit::SHUT))),
        "default quota" => Box::new(Library::large("default quota", default_quota(1_000, 3_600))),
        "governor" => Box::new(Governor::new(Limit::SHUT)),
        "throttlecrab" => Box::new(Throttlecrab::new(Limit::SHUT)),
        "limitador" => Box::new(Limitador::new(Limit::SHUT, keys)),
        _ => return None,
    })
}

fn resident_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    kib * 1024.0
}
