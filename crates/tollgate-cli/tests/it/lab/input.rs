//! Real-world logs: in several files, compressed, out of order, broken.

use super::Bench;
use super::traffic::{day, nginx};
use serde_json::Value;
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
    // Lines of adjacent seconds are swapped.
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
    // Ten minutes late, too far out of place.
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
        (&["replay", "a.txt", "--log-format", "$a$b"], "--log-format: no text separates $a and $b"),
        (&["replay", "a.txt", "--config", "bad.yaml"], "bad.yaml:1:"),
        (&["replay", "a.txt", "--attribute", "x"], "write NAME=COLUMN"),
        (&["replay", "a.txt", "--time-zone", "Mars"], "there is no time zone"),
        (&["replay", "a.txt", "--format", "nginxx"], "logs are auto, alb,"),
        (&["compare", "tollgate.yaml", "bad.yaml"], "name a log after the policies"),
        (&["suggest", "-"], "save a pipe first"),
    ] {
        let (status, stdout, stderr) = bench.text(arguments);
        assert_eq!((status, &*stdout), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
}

/// Over-long lines, garbage and blank lines at the start: `auto` skips them and loses no later
/// line, from a file or from a pipe.
#[test]
fn lines_that_cannot_be_read_may_come_first() {
    let good: String = nginx(&day()).lines().take(300).map(|line| format!("{line}\n")).collect();
    let long = [vec![b'x'; 5 << 20], b"\n".to_vec()].concat();
    let rubbish = b"\x00\xff\xfe rubbish\n".repeat(1_000);
    let heads = [("long", long, 1), ("rubbish", rubbish, 1_000)];
    let bench = Bench::new("first-lines", &[("tollgate.yaml", POLICY), ("b.yaml", POLICY)]);
    for (name, head, unreadable) in heads {
        let log = [&head[..], b"\n\r\n", good.as_bytes()].concat();
        bench.write(name, &log);
        let replay = [&["replay", name][..], &["replay", name, "--format", "nginx"]];
        let others = [
            &["compare", "b.yaml", name][..],
            &["suggest", name],
            &["replay", "-"],
            &["replay", name, "-"],
        ];
        for arguments in replay.into_iter().chain(others) {
            let all = [arguments, &["--format", "json"]].concat();
            let output = bench.run_with(&all, &log);
            let stderr = String::from_utf8_lossy(&output.stderr);
            let found: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|why| panic!("{arguments:?} {name}: {why}: {stderr}"));
            let times = if arguments.len() == 3 && arguments[2] == "-" { 2 } else { 1 };
            let input = &found["input"];
            assert_eq!(input["requests"], 300 * times, "{arguments:?} {name}: {input}");
            assert_eq!(input["unreadable"], unreadable * times, "{arguments:?} {name}: {input}");
            let why = input["samples"][0].as_str().unwrap();
            let reason = if name == "long" { "longer than 64 KiB" } else { "not UTF-8" };
            assert!(why.contains(":1: ") && why.contains(reason), "{why}");
        }
    }
}

/// A format that was named is tried on the whole file.
#[test]
fn a_named_format_is_read_however_late_its_lines_come() {
    let good = nginx(&day());
    let bench = Bench::new("late-lines", &[("tollgate.yaml", POLICY)]);
    bench.write("a.log", format!("{}{good}", "started\n".repeat(10_000)).as_bytes());
    let found = bench.json(&["replay", "a.log", "--format", "nginx"]);
    assert_eq!(found["input"]["unreadable"], 10_000);
    assert_eq!(found["input"]["requests"], good.lines().count());
    // A file without a request is reported, and the others are still counted.
    bench.write("b.log", "started\n".repeat(10_000).as_bytes());
    let (status, stdout, stderr) = bench.text(&["replay", "a.log", "b.log", "--format", "nginx"]);
    let why = "tollgate: b.log:1: this is not nginx, and neither is any other line: ";
    assert!(status == 2 && stderr.starts_with(why), "{stderr}");
    assert!(stdout.contains(" requests from 2023"), "{stdout}");
    let (status, stdout, stderr) = bench.text(&["replay", "b.log", "--format", "nginx"]);
    assert!(status == 2 && stdout.is_empty() && stderr.starts_with(why), "{stderr}");
}

#[test]
fn logs_without_requests_are_bad_input_with_a_fix() {
    let heading = "#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem sc-status\n";
    let files = [
        ("tollgate.yaml", POLICY),
        ("b.yaml", POLICY),
        ("empty.log", ""),
        ("blank.log", "\n\r\n\n"),
        ("heading.log", heading),
        ("one.csv", "time,ip\n1700000000,192.0.2.1\n"),
    ];
    let bench = Bench::new("empty", &files);
    for command in [&["replay"][..], &["compare", "b.yaml"], &["suggest"]] {
        for (files, says) in [
            (&["empty.log"][..], "tollgate: empty.log is empty; name a log with requests"),
            (&["blank.log"], "tollgate: blank.log is empty; name a log with requests"),
            (&["empty.log", "blank.log"], "tollgate: empty.log, blank.log are empty; name"),
            (&["heading.log"], "tollgate: heading.log: no line of 2 is a request; name"),
        ] {
            let (status, stdout, stderr) = bench.text(&[command, files, &["--quiet"]].concat());
            assert_eq!((status, &*stdout), (2, ""), "{command:?} {files:?}: {stderr}");
            assert!(stderr.starts_with(says), "{command:?} {files:?}: {stderr}");
        }
    }
    // One empty file among others is not an error.
    let (status, stdout, stderr) = bench.text(&["replay", "empty.log", "one.csv"]);
    assert!(status == 0 && stdout.contains("note: empty.log is empty"), "{stdout}{stderr}");
}

#[test]
fn files_of_other_kinds_are_named_with_what_to_do() {
    let bench = Bench::new("kinds", &[("tollgate.yaml", POLICY)]);
    bench.write("a.zst", b"\x28\xb5\x2f\xfd rest");
    bench.write("a.xz", b"\xfd7zXZ\0 rest");
    bench.write("utf16.csv", b"\xff\xfet\0i\0m\0e\0\n\0");
    std::fs::create_dir(bench.folder.0.join("logs")).unwrap();
    for (arguments, says) in [
        (&["replay", "a.zst"][..], "it is compressed with zstd, and only gzip is read here"),
        (&["suggest", "a.xz"], "decompress it first: xz -dk FILE"),
        (&["replay", "utf16.csv"], "utf16.csv:1: the file is UTF-16; convert it first: iconv"),
        (&["replay", "logs"], "cannot read logs: "),
        (&["suggest", "missing.log"], "cannot read missing.log: "),
        (&["replay", "-", "-"], "cannot read -: standard input is named twice"),
    ] {
        let (status, stdout, stderr) = bench.text(arguments);
        assert_eq!((status, &*stdout), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
    // A byte order mark and Windows line ends change nothing.
    bench.write("bom.csv", b"\xef\xbb\xbftime,ip\r\n1700000000,192.0.2.1\r\n");
    let first: String = nginx(&day()).lines().take(2).map(|line| format!("{line}\r\n")).collect();
    bench.write("bom.log", format!("\u{feff}{first}").as_bytes());
    for (file, requests) in [("bom.csv", 1), ("bom.log", 2)] {
        let input = &bench.json(&["replay", file])["input"];
        assert_eq!(
            (&input["requests"], &input["unreadable"]),
            (&requests.into(), &0.into()),
            "{input}"
        );
    }
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
