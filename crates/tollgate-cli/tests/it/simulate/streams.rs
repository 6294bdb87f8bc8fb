//! The outputs of a run, and how it ends.

use super::simulate;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const POLICY: &str = "limits: [{name: a, key: [user], algorithm: fixed-window, rate: 1/10s}]\n";

fn tollgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("simulate").args(arguments).stdin(Stdio::null());
    command
}

/// A folder with a policy, removed at the end.
struct InputFolder(std::path::PathBuf);

impl InputFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tollgate-it-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("tollgate.yaml"), POLICY).unwrap();
        Self(path)
    }
}

impl Drop for InputFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_bad_row_is_named_by_file_and_line() {
    for (row, message) in [
        ("{", "not JSON: EOF while parsing an object at column 1"),
        ("nonsense", "not JSON: expected a value at column 2"),
        ("[]", "invalid type: sequence, expected an object"),
        ("{}", "`time`: missing; this operation needs it"),
        (r#"{"time": "1"}"#, "`time`: not a number"),
        (r#"{"time": -1}"#, "`time`: negative"),
        (r#"{"time": 1.0000001}"#, "`time`: finer than a microsecond"),
        (r#"{"time": 9007199254.740992}"#, "`time`: too late"),
        (r#"{"time": 1, "time": 1}"#, "`time`: given twice"),
        (r#"{"time": 1, "user": "42"}"#, "`user`: unknown member"),
        (r#"{"time": 1, "attributes": {"a": "1", "a": "1"}}"#, "`attributes.a`: given twice"),
        (
            r#"{"time": 1, "attributes": {"user": 42}}"#,
            "`attributes.user`: invalid type: integer `42`",
        ),
        (r#"{"time": 1, "attributes": {"ip": "nowhere"}}"#, "`attributes.ip`: "),
        (r#"{"time": 1, "cost": 0.5}"#, "`cost`: not a whole number"),
        (r#"{"time": 1, "op": "chek"}"#, "`op`: unknown operation"),
        (r#"{"time": 1, "op": "reserve", "ttl": "61m"}"#, "`ttl`: out of range"),
        (r#"{"time": 1, "op": "settle", "reservation": "r"}"#, "`cost`: missing"),
        (
            r#"{"time": 1, "op": "settle", "reservation": "r", "cost": 4294967296}"#,
            "`cost`: a settled cost is at most 4294967295",
        ),
        (r#"{"time": 1, "op": "cancel"}"#, "`reservation`: missing"),
        (r#"{"time": 1} {"time": 2}"#, "not JSON: trailing characters"),
    ] {
        let ran = simulate(POLICY, &format!("{{\"time\": 0}}\n\n{row}\n{{\"time\": 9}}\n"), &[]);
        let expected = format!("requests.jsonl:3: {message}");
        assert!(ran.stderr.starts_with(&expected), "{row}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert_eq!((ran.status, ran.stdout.lines().count()), (1, 1), "{row}");
    }
}

#[test]
fn a_row_that_never_ends_is_refused() {
    let ran = simulate(POLICY, &format!("{{\"time\": 0}}\n{}", " {".repeat(1 << 20)), &[]);
    assert_eq!(ran.stderr, "requests.jsonl:2: larger than 65536 bytes\n");
    assert_eq!((ran.status, ran.stdout.lines().count()), (1, 1));
}

#[test]
fn a_bad_policy_ends_with_1_and_says_where() {
    let ran =
        simulate("limits: [{name: a, rate: 5/min, algoritm: gcra}]\n", "{\"time\": 0}\n", &[]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""));
    let expected = "tollgate.yaml:1:33: error[TG002]: unknown field `algoritm`, did you mean `algorithm`?\nhelp: ";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
}

#[test]
fn files_that_cannot_be_used_end_with_2() {
    let folder = InputFolder::new("unusable");
    let file = |name: &str| folder.0.join(name).to_string_lossy().into_owned();
    std::fs::write(folder.0.join("rows"), "{\"time\": 0}\n").unwrap();
    let (policy, rows, absent) = (file("tollgate.yaml"), file("rows"), file("absent"));
    let within = file("absent/plot.svg");
    for (arguments, message) in [
        (vec!["--config", &absent, "--requests", &rows], "cannot read "),
        (vec!["--config", &policy, "--requests", &absent], "cannot read "),
        (vec!["--config", &policy, "--requests", folder.0.to_str().unwrap()], "cannot read "),
        (vec!["--config", &policy, "--requests", &rows, "--plot", &within], "cannot write "),
        (vec!["--config", &policy], "error: "),
        (vec!["--requests", &rows], "there is no "),
    ] {
        let output = tollgate(&arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    }
}

#[test]
fn refusals_end_with_0_and_nothing_is_said() {
    let ran =
        simulate(POLICY, "{\"time\": 0, \"attributes\": {\"user\": \"1\"}, \"cost\": 2}\n", &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.starts_with("{\"allowed\":false,"));
}

/// A pipe, a log or CI also gets the summary.
#[test]
fn the_summary_is_said_to_whoever_reads_standard_error_unless_it_is_not_wanted() {
    let folder = InputFolder::new("summary");
    let row = "{\"time\": 1, \"attributes\": {\"user\": \"1\"}}\n";
    std::fs::write(folder.0.join("rows"), row.repeat(3)).unwrap();
    let said = |more: &[&str]| {
        let arguments = [&["--config", "tollgate.yaml", "--requests", "rows"], more].concat();
        let output = tollgate(&arguments).current_dir(&folder.0).output().unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.iter().filter(|b| **b == b'\n').count()),
            (Some(0), 3)
        );
        String::from_utf8(output.stderr).unwrap()
    };
    let summary = said(&[]);
    let lines: Vec<&str> = summary.lines().collect();
    assert!(lines[0].starts_with("3 rows, ") && lines[0].ends_with(" rows/s"), "{summary}");
    assert_eq!(lines[1..], ["1 admitted, 2 refused", "  a: 1 admitted, 2 refused"]);
    assert!(!summary.contains('\x1b') && !summary.contains('\r'), "{summary:?}");
    assert_eq!(said(&["--quiet"]), "");
}

#[test]
fn a_dash_reads_standard_input_as_it_comes() {
    let folder = InputFolder::new("dash");
    let mut child = tollgate(&["--config", "tollgate.yaml", "--requests", "-"])
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for time in 1..4 {
        // Each answer arrives before the next request is sent.
        writeln!(stdin, "{{\"time\": {time}}}").unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(answer.ends_with(&format!("\"time\":{time}.0}}")), "{answer}");
    }
    writeln!(stdin, "x").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("-:4: not JSON"), "{stderr}");
}

#[test]
fn a_reader_that_leaves_is_no_mistake() {
    let folder = InputFolder::new("leaves");
    let rows = "{\"time\": 1, \"attributes\": {\"user\": \"1\"}}\n".repeat(50_000);
    std::fs::write(folder.0.join("rows"), rows).unwrap();
    let mut child = tollgate(&["--config", "tollgate.yaml", "--requests", "rows"])
        .current_dir(&folder.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("{\"allowed\":true,"));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn two_runs_answer_alike() {
    let rows: String = (0..20_000)
        .map(|n| {
            let op = ["check", "reserve", "peek"][n % 3];
            format!(
                "{{\"time\": {}, \"op\": \"{op}\", \"attributes\": {{\"user\": \"{}\"}}}}\n",
                n / 7,
                n % 97
            )
        })
        .collect();
    let (one, two) =
        (simulate(POLICY, &rows, &["--headers"]), simulate(POLICY, &rows, &["--headers"]));
    assert_eq!(one.stdout.lines().count(), 20_000);
    assert!(one.stdout == two.stdout);
}

#[test]
fn a_bucket_is_one_for_each_limit_and_key_and_for_good() {
    let policy = "headers: [discord]\nlimits:\n- {name: a, key: [user], rate: 1/min}\n\
                  - {name: b, match: {path: /b}, rate: 1/min}\n";
    let rows: String = [r#""user": "1""#, r#""user": "2""#, r#""user": "1""#, r#""path": "/b""#]
        .iter()
        .map(|attributes| format!("{{\"time\": 1, \"attributes\": {{{attributes}}}}}\n"))
        .collect();
    let buckets = || -> Vec<String> {
        let ran = simulate(policy, &rows, &["--headers"]);
        let bucket = |line: &str| {
            let (_, rest) = line.split_once("\"X-RateLimit-Bucket\",\"").unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        assert_eq!(ran.stdout.matches("\"X-RateLimit-Scope\",\"user\"").count(), 1);
        ran.stdout.lines().map(bucket).collect()
    };
    let found = buckets();
    assert_eq!(found[0], found[2]);
    assert!(found[0] != found[1] && found[0] != found[3] && found[1] != found[3]);
    assert_eq!(found, buckets());
}

/// The line of a limit with a key is the sum over all keys, like its bars.
#[test]
fn the_picture_says_how_many_keys_share_its_line() {
    let folder = InputFolder::new("keys");
    let rows: String = (0..100)
        .map(|n| format!("{{\"time\": {n}, \"attributes\": {{\"user\": \"{}\"}}}}\n", n % 20))
        .collect();
    std::fs::write(folder.0.join("rows"), rows).unwrap();
    let arguments = ["--config", "tollgate.yaml", "--requests", "rows", "--plot", "plot.svg"];
    assert!(tollgate(&arguments).current_dir(&folder.0).output().unwrap().status.success());
    let svg = std::fs::read_to_string(folder.0.join("plot.svg")).unwrap();
    assert!(svg.contains("by user: 20 keys"), "{svg}");
}

/// Calendar windows are fixed windows, also if the file names no algorithm.
#[test]
fn the_picture_names_the_algorithm_in_force_and_the_time_zone() {
    let folder = InputFolder::new("calendar-title");
    let policy = "limits:
  - {name: local, rate: 3/day, time_zone: Europe/Berlin}
  - {name: monthly, rate: 50/month}
  - {name: plain, rate: 7/day}
";
    std::fs::write(folder.0.join("calendar.yaml"), policy).unwrap();
    std::fs::write(folder.0.join("rows"), "{\"time\": 1}\n").unwrap();
    let arguments = ["--config", "calendar.yaml", "--requests", "rows", "--plot", "plot.svg"];
    assert!(tollgate(&arguments).current_dir(&folder.0).output().unwrap().status.success());
    let svg = std::fs::read_to_string(folder.0.join("plot.svg")).unwrap();
    for title in
        ["fixed-window, 3/day, Europe/Berlin", "fixed-window, 50/month", "sliding-window, 7/day"]
    {
        assert!(svg.contains(title), "{title}: {svg}");
    }
}

/// Like `check` and `serve`.
#[test]
fn without_a_config_the_file_of_the_folder_counts() {
    let folder = InputFolder::new("no-config");
    std::fs::write(folder.0.join("rows"), "{\"time\": 1}\n").unwrap();
    let run = || tollgate(&["--requests", "rows"]).current_dir(&folder.0).output().unwrap();
    assert!(run().status.success());
    std::fs::remove_file(folder.0.join("tollgate.yaml")).unwrap();
    let output = run();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("there is no ./tollgate.yaml here"), "{error}");
}

/// A store of 64 KiB holds about a thousand keys, on a node and here.
#[test]
fn a_small_store_holds_as_many_keys_as_on_a_node() {
    let policy = "store: {memory: {max_bytes: 64KiB}}\n\
                  limits: [{name: a, key: [user], algorithm: gcra, rate: 1/h}]\n";
    let row = |n: u32| format!("{{\"time\": 1, \"attributes\": {{\"user\": \"u{n}\"}}}}\n");
    let requests: String = (0..1_500).map(row).collect();
    let run = simulate(policy, &requests, &[]);
    let admitted = run.stdout.lines().filter(|line| line.contains("\"allowed\":true")).count();
    assert_eq!(admitted, 1_500, "{}", run.stderr);
}
