//! `tollgate choose`.

use super::run;
use crate::page::{Page, Reader};
use crate::serve::process::Folder;
use crate::terminal::Terminal;
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

const PAGE: &str = include_str!("../../../../docs/choosing.md");

#[test]
fn the_command_of_the_page_prints_what_the_page_shows() {
    let folder = Folder::new("choosing");
    let page = Page::new(PAGE, &[]);
    for block in page.blocks("console", "In a script") {
        Reader::new(&folder).follow(block);
    }
}

#[test]
fn without_a_terminal_the_error_names_the_missing_flags() {
    let (status, out, error) = run(&["choose"], "protect\n");
    assert_eq!((status, &*out), (2, ""));
    for part in [
        "standard input is not a terminal",
        "--purpose protect|fair|shape|bill",
        "--machines one|many",
        "--audit yes|no",
        "--bursts yes|no",
        "--memory plenty|tight",
        "--store-failure open|closed|local",
    ] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    let (status, _, error) =
        run(&["choose", "--purpose", "bill", "--machines", "many", "--audit", "no"], "");
    assert_eq!(status, 2);
    assert!(error.contains("--store-failure") && !error.contains("--bursts"), "{error}");
    assert_eq!(run(&["choose", "--purpose", "speed"], "").0, 2);
}

#[test]
fn a_terminal_asks_what_the_flags_leave_open() {
    let folder = Folder::new("choose-terminal");
    let file = folder.0.join("tollgate.yaml");
    let program = env!("CARGO_BIN_EXE_tollgate");
    let terminal = Terminal::open(&format!(
        "{program} choose --machines one > {file}; {program} check {file}",
        file = file.display()
    ));
    for (question, answer) in [
        ("What is the limit for?", "fair"),
        ("audit that the limit was kept?", "2"),
        ("send several requests at once?", "y"),
        ("How much memory", "plenty"),
    ] {
        terminal.until(question);
        terminal.press(answer);
        terminal.press("Enter");
    }
    terminal.until("0 errors, 0 warnings in 1 file");
    assert!(std::fs::read_to_string(file).unwrap().contains("algorithm: sliding-window"));
}

/// The period of the limit in microseconds, and the most units that it may admit in one.
fn promised(policy: &str) -> (u64, usize) {
    let line = policy.lines().find(|line| line.contains("# and a burst of")).map_or_else(
        || policy.lines().find(|line| line.contains("    rate: ")).unwrap(),
        |line| line.rsplit("at most ").next().unwrap(),
    );
    let rate = line.trim().trim_start_matches("rate: ").split(' ').next().unwrap();
    let (count, period) = rate.split_once('/').unwrap();
    let period_us = match period {
        "s" => 1_000_000,
        "min" => 60_000_000,
        other => panic!("{other}"),
    };
    (period_us, count.parse().unwrap())
}

/// A client that sends without pause, and after a pause: no window exceeds the bound of an audited
/// policy.
#[test]
fn an_audited_policy_keeps_every_window() {
    let folder = Folder::new("choose-audit");
    let mut seen = HashSet::new();
    for purpose in ["protect", "fair", "shape"] {
        for bursts in ["yes", "no"] {
            for memory in ["plenty", "tight"] {
                let flags = ["--audit", "yes", "--machines", "one", "--purpose", purpose];
                let rest = ["--bursts", bursts, "--memory", memory];
                let (status, policy, error) = run(&[&["choose"], &flags[..], &rest].concat(), "");
                assert_eq!(status, 0, "{error}");
                let limits = policy[policy.find("limits:").unwrap()..].to_owned();
                if seen.insert(limits) {
                    assert_bounded(&folder, &policy);
                }
            }
        }
    }
    assert!(seen.len() >= 5, "{seen:#?}");
}

fn assert_bounded(folder: &Folder, policy: &str) {
    let (period_us, count) = promised(policy);
    let file = folder.0.join("audited.yaml");
    std::fs::write(&file, policy).unwrap();
    let step_us = period_us / 997;
    let times = (0..4_000_u64).filter(|step| !(1_200..2_000).contains(step));
    let rows: String = times
        .map(|step| {
            let us = step * step_us;
            let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
            format!("{{\"time\": {time}, \"attributes\": {{\"ip\": \"192.0.2.7\"}}}}\n")
        })
        .collect();
    let arguments = ["simulate", "--config", file.to_str().unwrap(), "--requests", "-"];
    let (status, out, error) = run(&arguments, &rows);
    assert_eq!(status, 0, "{error}");
    let answers = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let us = |value: &Value| Duration::from_secs_f64(value.as_f64().unwrap()).as_micros() as u64;
    let mut left: Vec<u64> = answers
        .filter(|answer| answer["allowed"] == true)
        .map(|answer| us(&answer["time"]) + us(&answer["delay"]))
        .collect();
    left.sort_unstable();
    let most = (0..left.len())
        .map(|first| left[first..].iter().take_while(|us| **us < left[first] + period_us).count());
    let most = most.max().unwrap();
    assert!(most <= count, "{most} in a window of {count}:\n{policy}");
    assert!(most + 1 >= count, "only {most} of {count}, so the promise is not tight:\n{policy}");
}
