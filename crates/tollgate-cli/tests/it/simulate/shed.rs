//! `tollgate simulate --workers`: an overload in virtual time, and its picture.

use super::picture::pictures;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Eight workers of 10 ms serve 800 requests a second.
const CAPACITY: u64 = 800;
const OVERLOAD_S: std::ops::Range<u64> = 6..16;
const SECONDS: u64 = 24;
const SHED: &str = "classes:
  - {name: critical, match: {path: \"/v1/charges/**\"}}
  - {name: normal, default: true}
shed: {adaptive: {}}
limits: []
";

/// Half of the capacity, then three times the capacity, then half again; a fifth is critical.
fn overload() -> String {
    let (mut rows, mut random) = (String::new(), 1_u64);
    let mut below = |most: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    for tick in 0..SECONDS * 10_000 {
        let is_over = OVERLOAD_S.contains(&(tick / 10_000));
        let rate = if is_over { 3 * CAPACITY } else { CAPACITY / 2 };
        if below(10_000) < rate {
            let path = if below(5) == 0 { "/v1/charges/1" } else { "/v1/items" };
            let (second, part) = (1_700_000_000 + tick / 10_000, tick % 10_000);
            writeln!(
                rows,
                "{{\"time\": {second}.{part:04}, \"attributes\": {{\"path\": \"{path}\"}}}}"
            )
            .unwrap();
        }
    }
    rows
}

struct ShedOutput {
    answers: Vec<Value>,
    summary: String,
    svg: String,
}

fn run(policy: &str, arguments: &[&str]) -> ShedOutput {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tollgate-shed-{}-{run}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tollgate.yaml"), policy).unwrap();
    fs::write(folder.join("overload.jsonl"), overload()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .current_dir(&folder)
        .args(["simulate", "--requests", "overload.jsonl", "--plot", "overload.svg"])
        .args(["--workers", "8"])
        .args(arguments)
        .output()
        .unwrap();
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{summary}");
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let svg = fs::read_to_string(folder.join("overload.svg")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    ShedOutput { answers, summary, svg }
}

/// Offered, admitted and shed of a class, and its p99 in whole milliseconds, as the summary says.
fn of_class(summary: &str, class: &str) -> [u64; 4] {
    let line = summary.lines().find_map(|line| line.trim().strip_prefix(class)).unwrap();
    let numbers = line.split(|c: char| !c.is_ascii_digit() && c != '.');
    let numbers: Vec<u64> =
        numbers.filter_map(|number| number.split('.').next()?.parse().ok()).collect();
    // Skips the numbers in `p50` and `p99`.
    [numbers[0], numbers[1], numbers[2], numbers[6]]
}

#[test]
fn an_overload_is_shed_by_class_and_the_picture_shows_it() {
    let ran = run(SHED, &[]);
    let rows = overload();
    assert_eq!(ran.answers.len(), rows.lines().count());
    for (answer, row) in ran.answers.iter().zip(rows.lines()) {
        let row: Value = serde_json::from_str(row).unwrap();
        assert_eq!(answer["time"], row["time"], "answers are in the order of the rows");
    }
    let [offered, admitted, shed, p99_ms] = of_class(&ran.summary, "critical:");
    assert_eq!(offered, admitted + shed, "{}", ran.summary);
    // The first overload of a node: its limit is unknown, so requests wait longer.
    assert!(shed == 0 && p99_ms <= 120, "{}", ran.summary);
    let [offered, admitted, shed, _] = of_class(&ran.summary, "normal:");
    assert_eq!(offered, admitted + shed);
    assert!(shed * 2 > offered, "{}", ran.summary);
    let second = |answer: &Value| answer["time"].as_f64().unwrap() - 1_700_000_000.0;
    // The throughput of eight workers, once the limit is found.
    let allowed_in = |from_s: f64, to_s: f64| {
        let is_in = |answer: &&Value| (from_s..to_s).contains(&second(answer));
        ran.answers.iter().filter(is_in).filter(|answer| answer["allowed"] == true).count() as u64
    };
    let served = allowed_in(10.0, 16.0);
    assert!((CAPACITY * 6 * 95 / 100..CAPACITY * 6 * 105 / 100).contains(&served), "{served}");
    let after = ran.answers.iter().filter(|answer| second(answer) >= 18.0);
    assert!(after.clone().count() > 1_000);
    assert!(after.into_iter().all(|answer| answer["allowed"] == true), "back to normal");
    let refused = ran.answers.iter().find(|answer| answer["allowed"] == false).unwrap();
    assert_eq!(refused["source"], "shed");
    assert!(refused["retry_after"].as_f64().unwrap() >= 1.0);
    let path = pictures().join("shedding.svg");
    if std::env::var_os("TOLLGATE_WRITE").is_some() {
        return fs::write(path, ran.svg).unwrap();
    }
    let known = fs::read_to_string(path).unwrap();
    assert!(known == ran.svg, "docs/pictures/shedding.svg is old; run this with TOLLGATE_WRITE=1");
}

#[test]
fn runs_are_alike_and_without_shed_everybody_waits() {
    let bimodal = ["--distribution", "bimodal", "--pauses", "50ms/1s"];
    let (first, second) = (run(SHED, &bimodal), run(SHED, &bimodal));
    assert_eq!(first.answers, second.answers);
    assert_eq!(first.svg, second.svg);
    let [_, _, shed, _] = of_class(&run("limits: []\n", &[]).summary, "requests:");
    assert_eq!(shed, 0);
    let [.., p99_ms] = of_class(&run("limits: []\n", &["--work", "5ms"]).summary, "requests:");
    let [.., slow_ms] = of_class(&run("limits: []\n", &[]).summary, "requests:");
    // 16,000 excess requests take 20 s at 800 a second. At 1,600 a second there are half as many,
    // and each takes half as long.
    assert!(
        (17_000..22_000).contains(&slow_ms) && (4_000..7_000).contains(&p99_ms),
        "{slow_ms} {p99_ms}"
    );
}
