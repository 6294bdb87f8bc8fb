//! The README's pictures, and their traffic.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

pub(super) fn pictures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures")
}

fn committed(name: &str) -> String {
    fs::read_to_string(pictures().join(name)).unwrap()
}

/// Requests of one client between two instants, evenly spread.
struct Stream {
    from_ms: u64,
    to_ms: u64,
    count: u64,
    attributes: &'static str,
}

const fn stream(from_ms: u64, to_ms: u64, count: u64, attributes: &'static str) -> Stream {
    Stream { from_ms, to_ms, count, attributes }
}

const BURSTY: [Stream; 5] = [
    // At the rate, which all algorithms admit.
    stream(0, 2_000, 20, r#""user": "42""#),
    // A burst across the start of a window.
    stream(2_800, 3_200, 24, r#""user": "42""#),
    // Twice the rate.
    stream(5_000, 7_000, 40, r#""user": "42""#),
    // A short burst.
    stream(8_500, 8_700, 16, r#""user": "42""#),
    // A little over the rate.
    stream(9_000, 12_000, 36, r#""user": "42""#),
];

const SCRAPER: &str = r#""ip": "192.0.2.66""#;
const GUESSER: &str = r#""ip": "192.0.2.77", "path": "/login", "method": "POST""#;

const ATTACK: [Stream; 5] = [
    stream(0, 300_000, 100, r#""ip": "192.0.2.1""#),
    stream(0, 300_000, 80, r#""ip": "192.0.2.2""#),
    // 150 a minute, which the tier of this key allows.
    stream(20_000, 280_000, 650, r#""ip": "192.0.2.3", "api_key": "key-1""#),
    stream(90_000, 210_000, 720, SCRAPER),
    stream(150_000, 240_000, 90, GUESSER),
];

/// All requests in order of time, as rows for `simulate`.
fn rows(streams: &[Stream]) -> String {
    let mut instants: Vec<(u64, &str)> = Vec::new();
    for stream in streams {
        let length_us = 1_000 * (stream.to_ms - stream.from_ms);
        let at = |n| (1_000 * stream.from_ms + length_us * n / stream.count, stream.attributes);
        instants.extend((0..stream.count).map(at));
    }
    instants.sort_by_key(|instant| instant.0);
    let row = |(us, attributes): (u64, &str)| {
        let (s, us) = (1_700_000_000 + us / 1_000_000, us % 1_000_000);
        format!("{{\"time\": {s}.{us:06}, \"attributes\": {{{attributes}}}}}\n")
    };
    instants.into_iter().map(row).collect()
}

#[test]
fn the_traffic_is_what_it_is_said_to_be() {
    for (file, streams) in [("bursty.jsonl", &BURSTY), ("attack.jsonl", &ATTACK)] {
        assert!(committed(file) == rows(streams), "{file} differs from the generated one");
    }
}

/// Draws a picture again, compares it with the committed one, and returns the answers.
fn draw(policy: &str, requests: &str, picture: &str) -> String {
    let process = std::process::id();
    let drawn = std::env::temp_dir().join(format!("tollgate-it-{process}-{picture}"));
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .current_dir(pictures())
        .args(["simulate", "--config", policy, "--requests", requests, "--plot"])
        .arg(&drawn)
        .output()
        .unwrap();
    assert!(output.status.success());
    let svg = fs::read_to_string(&drawn).unwrap();
    fs::remove_file(&drawn).unwrap();
    let again = format!(
        "tollgate simulate --config {policy} --requests {requests} --plot {picture} > /dev/null"
    );
    assert!(committed(picture) == svg, "in docs/pictures: {again}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_picture_of_the_algorithms_is_what_the_command_draws() {
    draw("algorithms.yaml", "bursty.jsonl", "algorithms.svg");
}

/// As the README says, only the scraper and the guesser are refused.
#[test]
fn the_picture_of_an_attack_is_what_the_command_draws() {
    let answers = draw("policy.yaml", "attack.jsonl", "attack.svg");
    let mut refused = [0, 0];
    for (row, answer) in committed("attack.jsonl").lines().zip(answers.lines()) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        if answer["allowed"] == false {
            let who = [SCRAPER, GUESSER].iter().position(|who| row.contains(who));
            refused[who.unwrap_or_else(|| panic!("{row}: {answer}"))] += 1;
        }
    }
    assert_eq!(refused, [478, 79]);
}
