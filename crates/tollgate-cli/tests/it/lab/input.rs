//! Logs as they come: in pieces, compressed, out of order, broken.

use super::Bench;
use super::traffic::{day, nginx};
use std::process::Command;

const POLICY: &str = "limits: [{name: per-address, key: [ip], rate: 60/min}]";

#[test]
fn files_are_merged_by_time_whatever_their_order_and_compression() {
    let whole = nginx(&day());
    let bench = Bench::new("merge", &[("tollgate.yaml", POLICY), ("whole.log", &whole)]);
    let lines: Vec<&str> = whole.lines().collect();
    // Three servers that share the traffic, and the halves of a rotated file.
    for server in 0..3 {
        let own: String =
            lines.iter().skip(server).step_by(3).map(|line| format!("{line}\n")).collect();
        bench.write(&format!("server-{server}.log"), own.as_bytes());
    }
    let (first, second) = lines.split_at(lines.len() / 2);
    bench.write("access.log.1", (first.join("\n") + "\n").as_bytes());
    bench.write("access.log", second.join("\n").as_bytes());
    // Lines of neighbouring seconds change places.
    let mut shuffled = lines.clone();
    shuffled.chunks_mut(50).for_each(<[&str]>::reverse);
    bench.write("shuffled.log", shuffled.join("\n").as_bytes());
    let gzip =
        Command::new("gzip").args(["-k", "server-1.log"]).current_dir(&bench.folder.0).status();
    assert!(gzip.unwrap().success());
    let expected = bench.json(&["replay", "whole.log"]);
    for files in [
        &["server-2.log", "server-1.log.gz", "server-0.log"][..],
        &["access.log", "access.log.1"],
        &["shuffled.log"],
    ] {
        let found = bench.json(&[&["replay"], files].concat());
        assert_eq!(found["refused"], expected["refused"], "{files:?}");
        assert_eq!(found["input"]["late"], 0, "{files:?}");
    }
}

#[test]
fn bad_lines_are_counted_and_the_first_are_shown() {
    let good = nginx(&day());
    let mut log = Vec::new();
    for (number, line) in good.lines().take(200).enumerate() {
        log.extend_from_slice(line.as_bytes());
        log.push(b'\n');
        match number {
            10 => log.extend_from_slice(b"\x00\xff\xfe rubbish\n"),
            20 => log.extend_from_slice(&[b'x'; 1 << 20]),
            30 => log.extend_from_slice(
                b"192.0.2.1 - - [yesterday] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n",
            ),
            40 => log.extend_from_slice(b"\n\r\n"),
            50 => log.extend_from_slice(
                b"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] \"\\x16\\x03\" 400 0 \"-\" \"-\"\n",
            ),
            // The line of a megabyte ends here.
            21 => log.push(b'\n'),
            _ => {}
        }
    }
    let bench = Bench::new("bad", &[("tollgate.yaml", POLICY)]);
    bench.write("a.log", &log);
    let found = bench.json(&["replay", "a.log"]);
    let input = &found["input"];
    assert_eq!((&input["unreadable"], &input["not_http"]), (&3.into(), &1.into()), "{input}");
    let samples: Vec<&str> =
        input["samples"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    assert_eq!(samples[0], "a.log:12: the line is not UTF-8");
    assert_eq!(samples[1], "a.log:23: the line is longer than 64 KiB");
    assert_eq!(samples[2], "a.log:34: no time: \"yesterday\"");
}

#[test]
fn clocks_that_jump_and_lines_that_are_late_are_reported() {
    let line =
        |time: &str| format!("192.0.2.1 - - [{time} +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n");
    let mut log = line("14/Nov/2023:22:13:20").repeat(10_000);
    log += &line("01/Jan/2033:00:00:00");
    log += &line("14/Nov/2023:22:13:21").repeat(10_000);
    // Ten minutes late, and too far from its place.
    log += &line("14/Nov/2023:22:03:21");
    let bench = Bench::new("jumps", &[("tollgate.yaml", POLICY), ("a.log", &log)]);
    let found = bench.json(&["replay", "a.log"]);
    assert_eq!(found["input"]["requests"], 20_002);
    assert_eq!(found["input"]["clock_jumps"], 2, "{}", found["notes"]);
    assert!(found["input"]["late"].as_u64().unwrap() >= 1, "{}", found["input"]);
    let notes = found["notes"].to_string();
    assert!(notes.contains("out of order") && notes.contains("the clock jumps 2 times"), "{notes}");
}

#[test]
fn what_cannot_be_read_at_all_is_an_error_with_a_fix() {
    let files = [("tollgate.yaml", POLICY), ("a.txt", "one\ntwo\n"), ("bad.yaml", "limits: [{}]")];
    let bench = Bench::new("errors", &files);
    for (arguments, says) in [
        (
            &["replay", "a.txt"][..],
            "a.txt: the format of the first lines is not known; name it with --format",
        ),
        (&["replay", "missing.log"], "cannot read missing.log"),
        (&["replay", "a.txt", "--format", "nginx"], "a.txt:1: this is not nginx"),
        (
            &["replay", "a.txt", "--log-format", "$a$b"],
            "--log-format: nothing stands between $a and $b",
        ),
        (&["replay", "a.txt", "--config", "bad.yaml"], "bad.yaml:1:"),
        (&["replay", "a.txt", "--attribute", "x"], "write NAME=COLUMN"),
        (&["replay", "a.txt", "--time-zone", "Mars"], "there is no time zone"),
        (&["replay", "a.txt", "--format", "nginxx"], "logs are auto, alb,"),
        (&["compare", "tollgate.yaml", "bad.yaml"], "name a log behind the policies"),
        (&["suggest", "-"], "save a pipe first"),
    ] {
        let (status, stdout, stderr) = bench.text(arguments);
        assert_eq!((status, &*stdout), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
    bench.write("empty.log", b"");
    let (status, stdout, _) = bench.text(&["replay", "empty.log"]);
    assert!(status == 0 && stdout.contains("note: the logs have no requests"), "{stdout}");
}

#[test]
fn a_damaged_file_is_named_and_the_status_is_2() {
    let log = nginx(&day());
    let bench = Bench::new("damaged", &[("tollgate.yaml", POLICY), ("a.log", &log)]);
    let gzip = Command::new("gzip").args(["-k", "a.log"]).current_dir(&bench.folder.0).status();
    assert!(gzip.unwrap().success());
    let whole = std::fs::read(bench.folder.0.join("a.log.gz")).unwrap();
    bench.write("cut.gz", &whole[..whole.len() / 2]);
    let mut flipped = whole.clone();
    let last = flipped.len() - 8;
    flipped[last] ^= 1;
    bench.write("flipped.gz", &flipped);
    for file in ["cut.gz", "flipped.gz"] {
        for command in
            [&["replay"][..], &["compare", "tollgate.yaml", "tollgate.yaml"], &["suggest"]]
        {
            let (status, stdout, stderr) = bench.text(&[command, &[file, "--quiet"]].concat());
            assert!(status == 2 && !stdout.is_empty(), "{command:?} {file}: {stderr}");
            assert_eq!(stderr.matches(&format!("tollgate: {file}: ")).count(), 1, "{stderr}");
        }
    }
}
