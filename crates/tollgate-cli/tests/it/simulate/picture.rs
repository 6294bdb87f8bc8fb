//! The README's picture, and the traffic in it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn pictures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures")
}

/// Requests between two instants, evenly spread: from millisecond, to millisecond, how many.
const TRAFFIC: [(u64, u64, u64); 5] = [
    // At the rate, which everybody admits.
    (0, 2_000, 20),
    // A burst across the start of a window.
    (2_800, 3_200, 24),
    // Twice the rate.
    (5_000, 7_000, 40),
    // A short burst.
    (8_500, 8_700, 16),
    // A little over the rate.
    (9_000, 12_000, 36),
];

fn bursty() -> String {
    let instants_us = TRAFFIC.into_iter().flat_map(|(from_ms, to_ms, count)| {
        (0..count).map(move |n| 1_000 * from_ms + 1_000 * (to_ms - from_ms) * n / count)
    });
    instants_us
        .map(|us| {
            let (s, us) = (1_700_000_000 + us / 1_000_000, us % 1_000_000);
            format!("{{\"time\": {s}.{us:06}, \"attributes\": {{\"user\": \"42\"}}}}\n")
        })
        .collect()
}

#[test]
fn the_traffic_is_what_it_is_said_to_be() {
    let committed = fs::read_to_string(pictures().join("bursty.jsonl")).unwrap();
    assert!(committed == bursty(), "docs/pictures/bursty.jsonl is not what is generated here");
}

#[test]
fn the_picture_is_what_the_command_draws() {
    let drawn = std::env::temp_dir().join(format!("tollgate-it-{}.svg", std::process::id()));
    let status = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .current_dir(pictures())
        .args(["simulate", "--config", "algorithms.yaml", "--requests", "bursty.jsonl", "--plot"])
        .arg(&drawn)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let svg = fs::read_to_string(&drawn).unwrap();
    fs::remove_file(&drawn).unwrap();
    let committed = fs::read_to_string(pictures().join("algorithms.svg")).unwrap();
    assert!(committed == svg, "make docs/pictures/algorithms.svg again, as algorithms.yaml says");
}
