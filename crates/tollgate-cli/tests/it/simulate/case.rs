//! A case: a policy, requests and the expected results, in one file with sections.
//!
//! `stdout` is compared byte for byte. `answers` and `fields` are short forms of it that leave out
//! common values, so that a case can be read beside its arithmetic.

use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Case {
    sections: HashMap<String, String>,
}

/// The results of a run.
pub(super) struct RunOutput {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) status: i32,
}

impl Case {
    pub(super) fn new(policy: &str, requests: &str, arguments: &[&str]) -> Self {
        let sections = [
            ("tollgate.yaml", policy.to_owned()),
            ("requests.jsonl", requests.to_owned()),
            ("arguments", arguments.join("\n")),
        ];
        Self { sections: sections.map(|(name, text)| (name.to_owned(), text)).into() }
    }

    pub(super) fn read(text: &str) -> Self {
        let mut sections: HashMap<String, String> = HashMap::new();
        let mut current = "about";
        for line in text.lines() {
            match line.strip_prefix("== ") {
                Some(name) => current = name,
                None => {
                    let section = sections.entry(current.to_owned()).or_default();
                    section.push_str(line);
                    section.push('\n');
                }
            }
            sections.entry(current.to_owned()).or_default();
        }
        Self { sections }
    }

    fn section(&self, name: &str) -> &str {
        self.sections.get(name).map_or("", String::as_str)
    }

    /// Runs the command in a new folder, in which the files have the names of their sections.
    pub(super) fn run(&self) -> RunOutput {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tollgate-it-{}-{run}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for file in self.sections.keys().filter(|name| name.contains('.')) {
            fs::write(folder.join(file), self.section(file)).unwrap();
        }
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .current_dir(&folder)
            .args(["simulate", "--config", "tollgate.yaml", "--requests", "requests.jsonl"])
            .arg("--quiet")
            .args(self.section("arguments").lines())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        fs::remove_dir_all(&folder).unwrap();
        RunOutput {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            status: output.status.code().unwrap(),
        }
    }

    /// The differences, if any.
    pub(super) fn complaint(&self) -> Option<String> {
        let ran = self.run();
        let status = self.section("status").trim().parse().unwrap_or(0);
        let mut pairs = vec![
            ("stderr", self.section("stderr").to_owned(), ran.stderr),
            ("status", format!("{status}\n"), format!("{}\n", ran.status)),
        ];
        let short = |form: fn(&Value) -> String| -> String {
            let rows = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
            rows.map(|row| form(&row) + "\n").collect()
        };
        for name in ["answers", "fields", "stdout"] {
            let Some(expected) = self.sections.get(name) else { continue };
            let found = match name {
                "answers" => short(answer),
                "fields" => short(fields),
                _ => ran.stdout.clone(),
            };
            pairs.push((name, expected.clone(), found));
        }
        assert!(pairs.len() > 2, "a case says what to expect");
        let differing = pairs.into_iter().find(|(_, expected, found)| expected != found);
        differing
            .map(|(name, expected, found)| format!("{name} should be\n{expected}but is\n{found}"))
    }
}

/// `admit memory | a admit 1/2 reset 10`, `refuse memory retry 5 | ...`, `charged 1 | ...`, `404
/// reservation`.
fn answer(row: &Value) -> String {
    if let Some(status) = row.get("title").and(row.get("status")) {
        return format!("{status} {}", text(&row["field"]));
    }
    let mut parts = vec![match row.get("charged") {
        Some(charged) => format!("charged {charged}"),
        None => {
            let mut head = format!("{} {}", verb(&row["allowed"]), text(&row["source"]));
            head += &unless_zero("delay", &row["delay"]);
            head + &unless_zero("retry", &row["retry_after"])
        }
    }];
    parts.extend(row["limits"].as_array().unwrap().iter().map(limit));
    if let Some(id) = row.get("reservation") {
        let expires = row.get("expires_after").map(|after| format!(" expires {}", number(after)));
        parts.push(format!("id {}{}", text(id), expires.unwrap_or_default()));
    }
    parts.join(" | ")
}

fn limit(row: &Value) -> String {
    let mut form = format!(
        "{} {} {}/{} reset {}{}",
        text(&row["name"]),
        verb(&row["allowed"]),
        number(&row["remaining"]),
        number(&row["limit"]),
        number(&row["reset_after"]),
        unless_zero("retry", &row["retry_after"]),
    );
    let source = text(&row["source"]);
    match text(&row["mode"]) {
        "shadow" => form += &format!(" shadow: {source}"),
        "enforce" if source == "memory" => {}
        _ => form += &format!(" {source}"),
    }
    form
}

/// `200 Name: value / Name: value`.
fn fields(row: &Value) -> String {
    let fields = row["headers"].as_array().unwrap();
    let fields: Vec<String> =
        fields.iter().map(|field| format!("{}: {}", text(&field[0]), text(&field[1]))).collect();
    format!("{} {}", row["status"], fields.join(" / ")).trim_end().to_owned()
}

fn verb(allowed: &Value) -> &'static str {
    if allowed.as_bool().unwrap() { "admit" } else { "refuse" }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn unless_zero(name: &str, value: &Value) -> String {
    match number(value).as_str() {
        "0" => String::new(),
        "-" => format!(" {name} never"),
        figure => format!(" {name} {figure}"),
    }
}

fn number(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        // Rust writes a float with the fewest digits that give the same number, and never with an
        // exponent.
        _ if value.is_f64() => value.as_f64().unwrap().to_string(),
        _ => value.to_string(),
    }
}
