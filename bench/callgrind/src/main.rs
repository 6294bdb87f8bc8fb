//! Instructions a decision, counted by callgrind:
//! `cargo run --release -p callgrind [-- functions [hot] | misses]`.
//!
//! Every contender runs twice under valgrind, with different numbers of decisions. The difference of
//! the counts is the cost of the decisions: start, filling and end cancel out. `functions` adds the
//! costliest functions of Tollgate. `misses` counts the cache lines that a decision over a million
//! keys loads, by cachegrind.

use contenders::{
    Arrivals, Batch, Contender, FloorHot, FloorTable, Governor, Library, Limit, Limitador,
    Throttlecrab, Traffic, Whole, default_quota, gcra,
};
use layer::Calls;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

/// Number of keys: small for valgrind, which is fifty times slower, but above the first sizes of a
/// table.
const KEYS: usize = 10_000;
/// The keys of the rows that leave the caches.
const MILLION: usize = 1_000_000;
/// One decision counts for seven hours, so that a store keeps all keys while valgrind fills it.
const LASTING: Limit = Limit { count: 100, period_s: 30 * 86_400, burst: 100 };
/// A first-level cache of 48 KiB and a second of 1.25 MiB, as in the machine of the benchmarks.
const CACHES: [&str; 2] = ["--D1=49152,12,64", "--LL=1310720,20,64"];
const FEW: usize = 64 * 1_000;
const MANY: usize = 64 * 3_000;
const NAMES: [&str; 23] = [
    "hot ours",
    "hot ours-three-quotas",
    "hot ours-beyond-a-word",
    "hot ours-whole-gate",
    "hot floor",
    "hot governor",
    "hot throttlecrab",
    "hot limitador",
    "refused ours",
    "refused ours-default",
    "refused governor",
    "keys ours",
    "keys ours-batch",
    "keys floor",
    "keys governor",
    "layer none",
    "layer pass",
    "layer governor",
    "layer governor-headers",
    "layer ours-tollgate",
    "layer ours-tollgate-gcra",
    "layer ours-tollgate-bare",
    "layer ours-tollgate-policy",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [command, name, count] if command == "decide" => decide(name, count),
        [command] if command == "misses" => report_misses(),
        [] => report(NAMES.iter().copied(), false),
        [command] if command == "functions" => report(NAMES.iter().copied(), true),
        [command, traffic] if command == "functions" => {
            let ours = NAMES.iter().copied().filter(|name| name.contains(" ours"));
            report(ours.filter(|name| name.starts_with(traffic.as_str())), true)
        }
        _ => {
            eprintln!("usage: callgrind [functions [hot | refused | keys | layer] | misses]");
            ExitCode::from(2)
        }
    }
}

fn report(names: impl Iterator<Item = &'static str> + Clone, functions: bool) -> ExitCode {
    println!("| | instructions a decision |\n|---|---|");
    for name in names.clone() {
        let Some((few, many)) = count(name, FEW).zip(count(name, MANY)) else {
            eprintln!("{name}: valgrind failed; is it installed?");
            return ExitCode::FAILURE;
        };
        println!("| {name} | {:.1} |", (many - few) / (MANY - FEW) as f64);
    }
    for name in names.filter(|name| functions && name.contains(" ours")) {
        println!("\n{name}, by function:\n");
        let lines = annotate(name);
        print!("```text\n{}```\n", lines.unwrap_or_else(|| "callgrind_annotate failed\n".into()));
    }
    ExitCode::SUCCESS
}

fn report_misses() -> ExitCode {
    println!("| | data references | first-level misses | second-level misses |\n|---|---|---|---|");
    for name in ["ours", "ours-three-quotas", "floor", "floor-three", "governor"] {
        let name = &format!("million {name}");
        // Many, since filling differs from run to run: hashes are seeded by chance.
        let Some((few, many)) = misses(name, MILLION).zip(misses(name, 3 * MILLION)) else {
            eprintln!("{name}: valgrind failed; is it installed?");
            return ExitCode::FAILURE;
        };
        let [references, first, second] =
            std::array::from_fn(|n| (many[n] - few[n]) / (2 * MILLION) as f64);
        println!("| {name} | {references:.1} | {first:.2} | {second:.2} |");
    }
    ExitCode::SUCCESS
}

/// Data references, and misses of both caches, of a process that decides `count` times.
fn misses(name: &str, count: usize) -> Option<[f64; 3]> {
    let out = profile(name);
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--quiet", "--cache-sim=yes"]).args(CACHES);
    command.arg(format!("--cachegrind-out-file={}", out.display()));
    command.arg(env::current_exe().ok()?).args(["decide", name, &count.to_string()]);
    command.stdout(Stdio::null()).status().ok()?.success().then_some(())?;
    let text = fs::read_to_string(&out).ok()?;
    // In order: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw.
    let summary = text.lines().find_map(|line| line.strip_prefix("summary:"))?;
    let all: Vec<f64> = summary.split_whitespace().map_while(|n| n.parse().ok()).collect();
    let sum = |reads: usize| Some(all.get(reads)? + all.get(reads + 3)?);
    Some([sum(3)?, sum(4)?, sum(5)?])
}

fn profile(name: &str) -> PathBuf {
    env::temp_dir().join(format!("tollgate-callgrind-{}.out", name.replace(' ', "-")))
}

/// All instructions of a process that decides `count` times.
fn count(name: &str, count: usize) -> Option<f64> {
    let out = profile(name);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--quiet"]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(env::current_exe().ok()?).args(["decide", name, &count.to_string()]);
    let status = command.stdout(Stdio::null()).status().ok()?;
    status.success().then(|| total(&out)).flatten()
}

fn total(profile: &Path) -> Option<f64> {
    let text = fs::read_to_string(profile).ok()?;
    text.lines().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()
}

/// The self cost per decision of the functions in the last run of `name`, with inlined code.
fn annotate(name: &str) -> Option<String> {
    let mut command = Command::new("callgrind_annotate");
    let output = command.args(["--auto=no", "--threshold=98"]).arg(profile(name)).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
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
    Some(functions.iter().take(12).map(line).collect())
}

/// Parses `18,438,110 (10.90%)  src/shard.rs:store::decide [program]`: the cost and the function.
fn read(line: &str) -> Option<(f64, &str)> {
    let (cost, rest) = line.trim().split_once(' ')?;
    let cost = cost.replace(',', "").parse().ok()?;
    let (_, place) = rest.split_once(')')?;
    let (_, function) = place.trim().split_once(':')?;
    Some((cost, function.rsplit_once(" [").map_or(function, |(function, _)| function)))
}

fn decide(name: &str, count: &str) -> ExitCode {
    let Some((traffic, contender)) = contender(name) else { return ExitCode::from(2) };
    let Ok(count) = count.parse() else { return ExitCode::from(2) };
    let keys = traffic.keys();
    for count in [keys.len().max(64), count] {
        std::hint::black_box(contender.run(Arrivals {
            keys: &keys,
            from: 0,
            count,
            shared: false,
        }));
    }
    ExitCode::SUCCESS
}

fn contender(name: &str) -> Option<(Traffic, Box<dyn Contender>)> {
    let (traffic, name) = name.split_once(' ')?;
    let is_layer = traffic == "layer";
    let (traffic, limit, keys) = match traffic {
        _ if is_layer => (Traffic::Hot, Limit::OPEN, 1),
        "hot" => (Traffic::Hot, Limit::OPEN, 1),
        "refused" => (Traffic::Hot, Limit::SHUT, 1),
        "million" => (Traffic::Uniform(MILLION), LASTING, MILLION),
        _ => (Traffic::Uniform(KEYS), Limit::OPEN, KEYS),
    };
    let contender: Box<dyn Contender> = match name {
        _ if is_layer => Box::new(Layer(Calls::new(name.trim_start_matches("ours-")).ok()?)),
        "ours" => Box::new(Library::new("ours", gcra(limit))),
        "ours-batch" => Box::new(Batch::new(limit)),
        "ours-three-quotas" => Box::new(Library::three("ours", limit)),
        "ours-beyond-a-word" => Box::new(Library::new("ours", default_quota(10_000_000, 1))),
        "ours-default" => Box::new(Library::new("ours", default_quota(1, 3_600))),
        "ours-whole-gate" => Box::new(Whole::new("ours", limit, 10)),
        "floor" if keys == 1 => Box::new(FloorHot::new(limit)),
        "floor" => Box::new(FloorTable::<1>::new(limit, keys)),
        "floor-three" => Box::new(FloorTable::<3>::new(limit, keys)),
        "governor" => Box::new(Governor::new(limit)),
        "throttlecrab" => Box::new(Throttlecrab::new(limit)),
        "limitador" => Box::new(Limitador::new(limit, keys)),
        _ => return None,
    };
    Some((traffic, contender))
}

/// A tower service, called in the process.
struct Layer(Calls);

impl Contender for Layer {
    fn name(&self) -> &'static str {
        "layer"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        self.0.run(arrivals.count)
    }
}
