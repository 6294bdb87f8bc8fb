use super::sink::LineSink;
use super::{AccessEntry, PendingAccess, Records};
use crate::tests::{TestNode, answer_now};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tollgate::engine::GateBuffers;
use tollgate_net::HttpResponse;
use tollgate_policy::settings::LogSink;

const WITHIN: Duration = Duration::from_secs(10);

fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("tollgate-record-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn file_sink(path: &Path, bytes_max: u64, keep: u32) -> (LineSink, Arc<AtomicU64>) {
    let dropped = Arc::<AtomicU64>::default();
    let path = path.to_str().unwrap().into();
    let settings = LogSink::File { path, bytes_max, keep };
    (LineSink::open(&settings, Path::new(""), dropped.clone()).unwrap(), dropped)
}

#[test]
fn a_file_is_rotated_between_lines_and_old_ones_go() {
    let folder = folder("rotate");
    let path = folder.join("a.log");
    let (sink, dropped) = file_sink(&path, 1_000, 2);
    for number in 0..100 {
        sink.write(format!("line {number:03} {}\n", "x".repeat(80)).as_bytes());
    }
    sink.flush(WITHIN);
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.log", "a.log.1", "a.log.2"]);
    let text: String = ["a.log.2", "a.log.1", "a.log"]
        .map(|name| fs::read_to_string(folder.join(name)).unwrap())
        .concat();
    let numbers: Vec<&str> = text.lines().map(|line| &line[5..8]).collect();
    let last: Vec<String> =
        (100 - numbers.len()..100).map(|number| format!("{number:03}")).collect();
    assert_eq!(numbers, last, "no line is cut, and the last ones are all there");
    assert!(fs::metadata(&path).unwrap().len() <= 1_000);
    assert_eq!(dropped.load(Relaxed), 0);
}

#[test]
fn a_full_disk_costs_lines_and_is_counted() {
    let (sink, dropped) = file_sink(Path::new("/dev/full"), 1 << 20, 1);
    (0..50).for_each(|_| sink.write(b"{}\n"));
    sink.flush(WITHIN);
    assert_eq!(dropped.load(Relaxed), 50);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_reads_blocks_no_writer() {
    let folder = folder("pipe");
    let path = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    let _reader = options.read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
    let (sink, dropped) = file_sink(&path, 1 << 20, 1);
    let line = [b"x".repeat(1_023), b"\n".to_vec()].concat();
    for _ in 0..3_000 {
        sink.write(&line);
    }
    let lost = dropped.load(Relaxed);
    assert!((1_500..2_990).contains(&lost), "3 MB came, and 1 MiB and the pipe hold some: {lost}");
}

fn node(log: &str) -> (TestNode, PathBuf) {
    let folder = folder(&log.len().to_string());
    let text = format!(
        "log: {{decisions: {{{log}, to: d.jsonl}}}}\nlimits: [{{name: shown, key: [user], rate: 1/min, show_keys: true}}, {{name: hidden, key: [user], rate: 9/min}}]"
    );
    (TestNode::in_folder(&folder, &text), folder.join("d.jsonl"))
}

/// Decides twice for a user, and writes the decisions.
fn decide_twice(node: &TestNode, user: &str) {
    use super::{DecidedKey, DecidedRequest};
    let rules = node.gate.rules();
    for start_us in [1_000_000, 2_000_000] {
        let mut facts = rules.facts(Default::default());
        facts.set("user", user).unwrap();
        let mut work = GateBuffers::default();
        let verdict = answer_now(node.gate.check(&rules, start_us, &facts, 1, &mut work));
        let (front, key, is_peek) = ("http", DecidedKey::Facts(&facts), false);
        let (parent, request_id, end_us) = (None, Some("r 1"), start_us + 7);
        let decided = DecidedRequest { front, parent, request_id, start_us, end_us, key, is_peek };
        node.records.record(&node.keys, &rules, &decided, &verdict);
    }
    node.records.flush(WITHIN);
}

fn json_lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_refusal_is_one_line_with_keys_hashed_unless_shown() {
    let (node, path) = node("only: refused");
    let user = "<b>\n\u{1b}[2J";
    decide_twice(&node, user);
    let [line] = &json_lines(&path)[..] else { panic!("one refusal") };
    assert_eq!(line["verdict"], "refused");
    assert_eq!(line["source"], "memory");
    assert_eq!(line["time"], "1970-01-01T00:00:02.000000Z");
    assert_eq!(line["duration_us"], 7);
    assert_eq!(line["key"]["user"], user);
    assert!(line.get("request_id").is_none(), "an id with a space is none");
    let limits = line["limits"].as_array().unwrap();
    assert_eq!((&limits[0]["name"], &limits[0]["allowed"]), (&"shown".into(), &false.into()));
    let hash = limits[1]["key"]["user"].as_str().unwrap();
    assert!(hash.starts_with('~') && hash.len() == 17, "{hash}");
}

#[test]
fn all_decisions_are_written_where_asked() {
    let (node, path) = node("only: all  ");
    decide_twice(&node, "42");
    let words: Vec<_> = json_lines(&path).iter().map(|line| line["verdict"].clone()).collect();
    assert_eq!(words, ["admitted", "refused"]);
    assert_eq!(node.records.dropped_lines(), [0, 0]);
}

#[test]
fn a_reload_opens_a_renamed_file_again() {
    let (node, path) = node("only: all    ");
    decide_twice(&node, "a");
    fs::rename(&path, path.with_extension("old")).unwrap();
    let logs = node.records.open(&node.settings, path.parent().unwrap()).unwrap();
    node.records.set(logs);
    decide_twice(&node, "b");
    assert_eq!(json_lines(&path).len(), 2);
    assert_eq!(json_lines(&path.with_extension("old")).len(), 2);
}

#[test]
fn a_log_in_no_folder_is_an_error_that_names_the_field() {
    let compiled = tollgate_policy::compile(b"log: {access: {to: none-such/a.log}}").unwrap();
    let error = Records::default().open(&compiled.settings, Path::new("/")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("none-such/a.log") && text.ends_with("change `log.access.to`"), "{text}");
}

#[test]
fn access_lines_have_the_form_of_apache_or_json() {
    for (format, expected) in [
        ("common", "192.0.2.7 - - [14/Nov/2023:22:13:20 +0000] \"GET /a\\x22b HTTP/1.1\" 204 5\n"),
        (
            "combined",
            "192.0.2.7 - - [14/Nov/2023:22:13:20 +0000] \"GET /a\\x22b HTTP/1.1\" 204 5 \"-\" \"agent\\xFF\\x0A\\x5C\"\n",
        ),
        (
            "json",
            "{\"time\":\"2023-11-14T22:13:20.000000Z\",\"client\":\"192.0.2.7\",\"method\":\"GET\"",
        ),
    ] {
        let folder = folder(format);
        let text = format!("log: {{access: {{format: {format}, to: a.log}}}}");
        let settings = tollgate_policy::compile(text.as_bytes()).unwrap().settings;
        let records = Records::default();
        records.set(records.open(&settings, &folder).unwrap());
        let entry = AccessEntry {
            time: 1_700_000_000_000_000,
            client: "192.0.2.7".into(),
            method: "GET".into(),
            target: "/a\"b".into(),
            protocol: "HTTP/1.1",
            user_agent: Some(b"agent\xff\n\\".into()),
            ..AccessEntry::default()
        };
        let pending = PendingAccess::new(entry, records.access().unwrap());
        let status = hyper::StatusCode::NO_CONTENT;
        let mut answer =
            HttpResponse { status, body: b"hello".to_vec(), ..HttpResponse::default() };
        pending.answered("admitted", Some("up:80"), &mut answer);
        records.flush(WITHIN);
        let written = fs::read_to_string(folder.join("a.log")).unwrap();
        assert!(written.starts_with(expected), "{written}");
        if format == "json" {
            let line: serde_json::Value = serde_json::from_str(&written).unwrap();
            assert_eq!(line["user_agent"], "agent\\xFF\n\\");
        }
    }
}

#[test]
fn a_client_that_leaves_is_written_too() {
    let folder = folder("left");
    let settings = tollgate_policy::compile(b"log: {access: {to: a.log}}").unwrap().settings;
    let records = Records::default();
    records.set(records.open(&settings, &folder).unwrap());
    drop(PendingAccess::new(AccessEntry::default(), records.access().unwrap()));
    records.flush(WITHIN);
    assert!(fs::read_to_string(folder.join("a.log")).unwrap().contains(" 499 "));
}
